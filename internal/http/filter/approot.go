package filter

import (
	"fmt"
	"net/http"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/model/ir"
)

// appRoot redirects requests for "/" to the start page of an application.
type appRoot struct{ ir.AppRoot }

func newAppRoot(of ir.AppRoot) (Filter, error) {
	if !strings.HasPrefix(of.Path, "/") || strings.HasPrefix(of.Path, "//") ||
		!httpguts.ValidHeaderFieldValue(of.Path) {
		return nil, fmt.Errorf("%q is not a path to which requests can be redirected", of.Path)
	}
	return &appRoot{of}, nil
}

func (h *appRoot) Apply(x *exchange.Exchange) (bool, error) {
	location := h.Path
	if !h.Relative {
		location = atHost(x, location)
	}
	return true, x.Respond(http.StatusFound, "", message.Location.Field(location))
}

// atHost returns the URL of a path at the host that the client has requested. It returns the path if the request names
// no host.
func atHost(x *exchange.Exchange, path string) string {
	if host := x.Client().Host; host != "" {
		return x.Client().Proto + "://" + host + path
	}
	return path
}
