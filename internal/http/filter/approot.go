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
	if host := x.Client().Host; host != "" && !h.Relative {
		location = x.Client().Proto + "://" + host + location
	}
	return true, x.Respond(http.StatusFound, "", message.Location.Field(location))
}
