package filter_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/tests/exchangetest"
)

var bandwidthCases = []filterCase{
	{name: "a limit", settings: `{"bytes_per_second": 100}`, requests: []requestCase{
		{request: "GET http://shop.example/", next: same, backend: "404 | X-Own: a", response: "404 | X-Own: a"},
		{request: "GET http://shop.example/", next: same, fails: 502, response: "502"},
	}},
	rejected("no rate", `{"after": 1}`, "must be positive"),
	rejected("a negative rate", `{"bytes_per_second": -1}`, "must be positive"),
	rejected("a negative amount", `{"bytes_per_second": 1, "after": -1}`, "must not be negative"),
}

// TestBandwidth checks how long responses of 500 bytes take with a limit of 100 bytes per second. The body is written
// four times per second, and the first part at once.
func TestBandwidth(t *testing.T) {
	for name, c := range map[string]struct {
		settings string
		write    func(x *exchange.Exchange, body string) error
		want     time.Duration
	}{
		"all at once":              {`{"bytes_per_second": 100}`, write(500), 4750 * time.Millisecond},
		"in small parts":           {`{"bytes_per_second": 100}`, write(10), 4900 * time.Millisecond},
		"copied":                   {`{"bytes_per_second": 100}`, copied, 4750 * time.Millisecond},
		"after 200 bytes":          {`{"bytes_per_second": 100, "after": 200}`, write(500), 2750 * time.Millisecond},
		"after 200 bytes in parts": {`{"bytes_per_second": 100, "after": 200}`, write(150), 2750 * time.Millisecond},
		"after the whole body":     {`{"bytes_per_second": 100, "after": 500}`, write(500), 0},
		"slow":                     {`{"bytes_per_second": 2}`, write(500), 249500 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x, response := exchangetest.New(t, "GET http://shop.example/")
				if _, err := newEnvironment(t).newFilter(t, "k8singress_bandwidth", c.settings).Apply(x); err != nil {
					t.Fatal(err)
				}
				begin, body := time.Now(), strings.Repeat("0123456789", 50)
				if err := c.write(x, body); err != nil || response.Body.String() != body {
					t.Errorf("the client gets %q, %v", response.Body.String(), err)
				}
				if took := time.Since(begin); took != c.want {
					t.Errorf("it took %v, want %v", took, c.want)
				}
			})
		})
	}
}

// write returns a function that writes a body in parts of size bytes.
func write(size int) func(x *exchange.Exchange, body string) error {
	return func(x *exchange.Exchange, body string) error {
		for body != "" {
			n := min(size, len(body))
			if _, err := x.Writer.Write([]byte(body[:n])); err != nil {
				return err
			}
			body = body[n:]
		}
		return nil
	}
}

func copied(x *exchange.Exchange, body string) error {
	_, err := x.Writer.ReadFrom(strings.NewReader(body))
	return err
}

// TestBandwidthEndsWithTheRequest checks that a limited response ends at once if the client disconnects.
func TestBandwidthEndsWithTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, response := exchangetest.New(t, "GET http://shop.example/")
		gone := errors.New("the client has disconnected")
		ctx, cancel := context.WithCancelCause(t.Context())
		x.SetContext(ctx)
		f := newEnvironment(t).newFilter(t, "k8singress_bandwidth", `{"bytes_per_second": 1}`)
		if _, err := f.Apply(x); err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(3500*time.Millisecond, func() { cancel(gone) })
		if n, err := x.Writer.Write(make([]byte, 500)); n != 4 || response.Body.Len() != 4 || !errors.Is(err, gone) {
			t.Errorf("%d bytes are written, %d arrived, %v", n, response.Body.Len(), err)
		}
	})
}
