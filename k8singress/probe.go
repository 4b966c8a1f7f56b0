package k8singress

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/live"
	"github.com/k8singress/k8singress/internal/http/message"
)

var (
	errStatus = errors.New(
		"clients with this address may not read the status page: add the address to nginx-status-ipv4-whitelist in " +
			"the ConfigMap")
	errStatusMethod = errors.New("the status page supports only GET and HEAD")
)

// serveProbe responds to health checks from load balancers, and to monitoring systems that read the nginx status page.
func serveProbe(table *live.Table, x *exchange.Exchange) error {
	switch {
	case x.Route.Path == live.HealthPath:
		return x.Respond(http.StatusOK, "")
	case !table.ReadsStatus(x):
		return exchange.Fail(http.StatusForbidden, errStatus)
	case x.Method != http.MethodGet && x.Method != http.MethodHead:
		return exchange.Fail(http.StatusMethodNotAllowed, errStatusMethod)
	}
	return x.Respond(http.StatusOK, statusPage(), message.ContentType.Field("text/plain"))
}

// statusPage returns a status page in the format of nginx's stub_status module. The number of waiting connections
// (Waiting) includes connections that are currently sending the head of a request.
func statusPage() string {
	c := connections()
	return fmt.Sprintf(
		"Active connections: %d \nserver accepts handled requests\n %d %d %d \nReading: 0 Writing: %d Waiting: %d \n",
		c.Active, c.Accepted, c.Handled, c.Requests, c.Writing, c.Waiting)
}
