package proxy_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"

	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/proxy"
	"github.com/k8singress/k8singress/internal/realip"
)

// deaf is a client who takes no answer.
type deaf struct{ *httptest.ResponseRecorder }

func (deaf) Write([]byte) (int, error) { return 0, errors.New("connection reset by peer") }

// TestWhatAClientDoesIsNoFaultOfTheEndpoint holds that nobody can have endpoints ejected that are well.
func TestWhatAClientDoesIsNoFaultOfTheEndpoint(t *testing.T) {
	t.Run("it leaves before the answer", func(t *testing.T) {
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		endpoints := of(serve(t, func(conn net.Conn, _ *http.Request) bool {
			leave()
			_, _ = conn.Read(make([]byte, 1))
			return false
		}))
		if got := forward(pool(t), request(t, http.MethodGet, "").WithContext(ctx), endpoints); got != "error 499" {
			t.Error(got)
		}
		blameless(t, endpoints)
	})
	t.Run("it takes no answer", func(t *testing.T) {
		endpoints := of(serve(t, says(fine)))
		err := send(pool(t), deaf{httptest.NewRecorder()}, request(t, http.MethodGet, ""), settings(), endpoints)
		if !errors.Is(err, proxy.ErrCut) {
			t.Errorf("%v, want that the answer is cut off", err)
		}
		blameless(t, endpoints)
	})
	t.Run("its request cannot be written", func(t *testing.T) {
		endpoints := of(serve(t, says(fine)))
		r := request(t, http.MethodGet, "")
		r.Header["X-Bad"] = []string{"a\r\nb"}
		if got := forward(pool(t), r, endpoints); got != "error 400" {
			t.Error(got)
		}
		blameless(t, endpoints)
	})
	t.Run("its body breaks off", func(t *testing.T) {
		endpoints := of(serve(t, says(fine)), serve(t, says(fine)))
		r := request(t, http.MethodPut, "")
		r.Body, r.ContentLength = io.NopCloser(io.MultiReader(strings.NewReader("half"), ending{errors.New("malformed chunk")})), -1
		s := settings()
		s.StreamRequest = true
		if got := long(pool(t), r, s, endpoints); got != "error 400" || endpoints.next != 1 {
			t.Errorf("%s after %d attempts", got, endpoints.next)
		}
		blameless(t, endpoints)
	})
}

// ending is a reader that fails.
type ending struct{ error }

func (e ending) Read([]byte) (int, error) { return 0, e.error }

func blameless(t *testing.T, endpoints *inTurn) {
	t.Helper()
	if slices.Contains(endpoints.failed, true) {
		t.Error("the endpoint is said to have failed")
	}
}

// TestABodyIsNotSentInPieces holds that a body which has gone to one endpoint in part, and is not kept, goes to no other:
// the rest of it would be taken for all.
func TestABodyIsNotSentInPieces(t *testing.T) {
	for name, first := range map[string]func(net.Conn, *http.Request) bool{
		"it hangs up":      hangUp,
		"it answers badly": says("HTTP/1.1 503 No\r\nContent-Length: 2\r\n\r\nno"),
	} {
		t.Run(name, func(t *testing.T) {
			second := serve(t, says(fine))
			r := request(t, http.MethodPut, strings.Repeat("x", 100<<10))
			r.ContentLength = -1
			s := settings(ir.RetryOnError, ir.RetryOn503)
			s.StreamRequest = true
			got := long(pool(t), r, s, of(serve(t, first), second))
			if got != "error 502" && got != "503 no" || second.requests.Load() != 0 {
				t.Errorf("%s, and the second endpoint got %d requests", got, second.requests.Load())
			}
		})
	}
	t.Run("nobody is there", func(t *testing.T) {
		r := request(t, http.MethodPost, "all")
		s := settings()
		s.StreamRequest = true
		if got := long(pool(t), r, s, of(refusing(t), serve(t, says(fine)))); got != "200 ok" {
			t.Errorf("%s, although the first endpoint got nothing", got)
		}
	})
}

// long does what the handler and reverse_proxy do for a request that is not ordinary.
func long(p *proxy.Pool, r *http.Request, s *proxy.Settings, endpoints *inTurn) string {
	x := proxy.NewExchange(s, endpoints)
	defer x.Close()
	client := realip.New(ir.Clients{}).Of(r)
	x.Tell(r, &client, "id", client.IP)
	for {
		address, _ := x.Next()
		attempt := r.Clone(r.Context())
		attempt.URL.Host = address
		attempt.Body = io.NopCloser(r.Body)
		response, err := p.RoundTrip(attempt, x)
		if err == nil {
			w := httptest.NewRecorder()
			w.WriteHeader(response.StatusCode)
			_, err = io.Copy(w, response.Body)
			_ = response.Body.Close()
			return outcome(w, err)
		}
		var again reverseproxy.DialError
		if !errors.As(err, &again) {
			return outcome(nil, x.Failure())
		}
	}
}

// TestEachAttemptIsAccountedFor holds that load balancing hears of each endpoint, once.
func TestEachAttemptIsAccountedFor(t *testing.T) {
	endpoints := of(refusing(t), serve(t, hangUp), serve(t, says(fine)))
	if got := forward(pool(t), request(t, http.MethodGet, ""), endpoints); got != "200 ok" {
		t.Error(got)
	}
	if !slices.Equal(endpoints.failed, []bool{true, true, false}) {
		t.Errorf("failed: %v", endpoints.failed)
	}
}
