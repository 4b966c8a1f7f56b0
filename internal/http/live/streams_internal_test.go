package live

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/k8singress/k8singress/internal/http/exchange"
)

// TestFailedStreamIsNotCanceled checks that the context of a stream that has failed is as before, so that the failure
// does not look like a client that has disconnected. The context of a stream that the controller has ended stays
// canceled.
func TestFailedStreamIsNotCanceled(t *testing.T) {
	for name, ends := range map[string]bool{"failed": false, "ended": true} {
		var table *Table
		table = scriptedTable(t, routesOf("/a"), map[string]script{"/a": func(*exchange.Exchange) (bool, error) {
			if ends {
				endingStreams{streams: table.index.Load().find("shop.example").all[0].streams}.close()
			}
			return false, exchange.Fail(http.StatusBadGateway, nil)
		}})
		if _, x, _ := ask(t, table, "GET http://shop.example/a | Upgrade: websocket"); ends !=
			errors.Is(x.Context().Err(), context.Canceled) {
			t.Errorf("%s: the context is %v", name, x.Context().Err())
		}
	}
}
