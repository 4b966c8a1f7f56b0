package live

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/k8singress/k8singress/internal/exchange"
	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/message"
)

// redirect answers a request that came without TLS with the way to HTTPS. It does not answer if the request came by HTTPS to
// a proxy in front, whose word counts.
func redirect(x *exchange.Exchange, to *ir.HTTPSRedirect) (answered bool, err error) {
	client := x.Client()
	if client.Proto != "http" {
		return false, nil
	}
	host := client.Hostname()
	if host == "" {
		// HTTP/1.0 need not say whom it asks. There is no other place to send it to, and it may not stay here.
		return true, x.Respond(http.StatusBadRequest, "")
	}
	if to.Port != 0 {
		host += ":" + strconv.Itoa(to.Port)
	}
	target := x.Target
	if !to.KeepSlash {
		target = strings.TrimSuffix(target, "/")
	}
	return true, x.Respond(to.Status, "", message.Location.Field("https://"+host+target))
}
