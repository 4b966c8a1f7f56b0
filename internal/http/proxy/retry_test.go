package proxy_test

import (
	"net"
	"net/http"
	"testing"

	"github.com/k8singress/k8singress/internal/model/ir"
)

// TestRetryConditions checks all conditions of proxy-next-upstream.
func TestRetryConditions(t *testing.T) {
	unavailable := respondWith("HTTP/1.1 503 No\r\nContent-Length: 2\r\n\r\nno")
	for name, test := range map[string]struct {
		on     []ir.RetryOn
		method string
		first  func(net.Conn, *http.Request) bool
		want   string
	}{
		"off": {[]ir.RetryOn{}, http.MethodGet, hangUp, "error 502"},
		"error only, invalid header": {[]ir.RetryOn{ir.RetryOnError}, http.MethodGet,
			respondWith("SSH-2.0-x\r\n\r\n"), "error 502"},
		"invalid header": {[]ir.RetryOn{ir.RetryOnInvalidHeader}, http.MethodGet,
			respondWith("SSH-2.0-x\r\n\r\n"), "200 ok"},
		"a status":       {[]ir.RetryOn{ir.RetryOn503}, http.MethodGet, unavailable, "200 ok"},
		"another status": {[]ir.RetryOn{ir.RetryOn502}, http.MethodGet, unavailable, "503 no"},
		"a status, POST": {[]ir.RetryOn{ir.RetryOn503}, http.MethodPost, unavailable, "503 no"},
		"a status, POST, non_idempotent": {[]ir.RetryOn{ir.RetryOn503, ir.RetryNonIdempotent}, http.MethodPost,
			unavailable, "200 ok"},
		"error, POST, non_idempotent": {[]ir.RetryOn{ir.RetryOnError, ir.RetryNonIdempotent}, http.MethodPost,
			hangUp, "200 ok"},
	} {
		t.Run(name, func(t *testing.T) {
			endpoints := of(serve(t, test.first), serve(t, respondWith(fine)))
			if got := outcomeOf(pool(t), request(t, test.method, "body"), settings(test.on...),
				endpoints); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// TestLastResponseIsForwarded checks that a response with a retriable status is forwarded if there is no other endpoint
// left.
func TestLastResponseIsForwarded(t *testing.T) {
	bad := serve(t, respondWith("HTTP/1.1 503 No\r\nContent-Length: 2\r\n\r\nno"))
	if got := outcomeOf(pool(t), request(t, http.MethodGet, ""), settings(ir.RetryOn503), of(bad)); got != "503 no" ||
		bad.requests.Load() != 3 {
		t.Errorf("%s after %d requests", got, bad.requests.Load())
	}
}
