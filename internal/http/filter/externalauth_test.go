package filter_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/k8singress/k8singress/internal/http/callout"
	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/filter"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/http/realip"
	"github.com/k8singress/k8singress/internal/model/ir"
)

// TestExternalAuthWithoutConnection checks that a request gets 503 if there is no free connection for its external
// authentication. The service has not failed, so clients may retry.
func TestExternalAuthWithoutConnection(t *testing.T) {
	busy := func(*message.Request, *callout.Call) (callout.Response, error) {
		return callout.Response{}, fmt.Errorf("external authentication at 192.0.2.1:80: %w", callout.ErrBusy)
	}
	shared, settings := filter.NewShared(busy, nil), []byte(`{"url": "http://192.0.2.1/"}`)
	f, ok, err := filter.New("k8singress_external_auth", settings, shared)
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	x := &exchange.Exchange{
		Request: &message.Request{
			Method: http.MethodGet, Host: "shop.example", Target: "/", Conn: &message.Conn{RemoteIP: "192.0.2.2"},
		},
		Route:   &exchange.Route{Host: "shop.example", Path: "/", Origin: "Ingress/shop/web"},
		Clients: realip.New(ir.Clients{}), Global: &ir.Global{},
	}
	if responded, err := f.Apply(x); responded || exchange.StatusOf(err) != http.StatusServiceUnavailable {
		t.Errorf("responded %v, with the error %v", responded, err)
	}
}
