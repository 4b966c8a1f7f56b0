package k8singress_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// serve starts a server with the handler in front of another handler, and with one host "h" whose response is
// "ingress". options are added to the JSON of the handler.
func serve(t *testing.T, options string) (address string) {
	t.Helper()
	return serveBy(t, `{"handler": "k8singress"`+options+`}`)
}

// serveBy is like serve, but handler is the whole JSON of the first handler.
func serveBy(t *testing.T, handler string) (address string) {
	t.Helper()
	address = fixture.Address(t)
	p := start(t, socket(t), fmt.Sprintf(`{
		"http": {"servers": {"s": {"listen": [%q], "automatic_https": {"disable": true}, "routes": [
			{"handle": [%s, {"handler": "static_response", "body": "next"}]}
		]}}},
		"k8singress": {"http": [], "https": [], "admin": "off", "live": {"hosts": {"h": {"routes": [
			{"type": "prefix", "path": "/", "chain": [{"handle": [{"handler": "static_response", "body": "ingress"}]}]}
		]}}}}
	}`, address, handler))
	p.eventually("ready", func() error {
		if got := p.ask(http.MethodGet, "status", ""); !strings.Contains(got.body, `"ready":true`) {
			return errors.New(got.body)
		}
		return nil
	})
	return address
}

// converse sends a request line unchanged.
func converse(t *testing.T, address, line, host string) (status int, body string) {
	t.Helper()
	conn, err := net.DialTimeout("tcp", address, patience)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", line, host)
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// TestRequestLines checks that a request line without a path is rejected and not treated as a request for "/", because
// the backend would see another path.
func TestRequestLines(t *testing.T) {
	address := serve(t, "")
	for line, want := range map[string]int{
		"GET /":              http.StatusOK,
		"GET /x?y":           http.StatusOK,
		"GET http://h":       http.StatusOK,
		"GET http://h/x":     http.StatusOK,
		"GET http://other/x": http.StatusNotFound,
		"GET x:admin":        http.StatusBadRequest,
		"GET http:admin":     http.StatusBadRequest,
		"GET *":              http.StatusBadRequest,
		"GET admin":          http.StatusBadRequest,
	} {
		status, body := converse(t, address, line, "h")
		if status != want || (body == "ingress") != (want == http.StatusOK) {
			t.Errorf("%s: %d %q, want %d", line, status, body, want)
		}
	}
}

func TestUnknownHosts(t *testing.T) {
	const notFound = "404 404 Not Found\nk8singress, "
	for options, want := range map[string]string{``: notFound, `,"pass_thru":false`: notFound,
		`,"pass_thru":true`: "200 next"} {
		t.Run(options, func(t *testing.T) {
			address := serve(t, options)
			status, body := converse(t, address, "GET /", "other")
			if !strings.HasPrefix(fmt.Sprint(status, " ", body), want) {
				t.Errorf("%d %q, want %s", status, body, want)
			}
			if status, body := converse(t, address, "GET /", "h"); status != http.StatusOK || body != "ingress" {
				t.Errorf("the host that is there: %d %q", status, body)
			}
		})
	}
}

// TestErrorsInASubroute checks that error routes of a subroute get the errors of the handler. Without them, the
// controller sends the response.
func TestErrorsInASubroute(t *testing.T) {
	const tea = `, "errors": {"routes": [
		{"handle": [{"handler": "static_response", "status_code": 418, "body": "tea"}]}
	]}`
	for errorRoutes, want := range map[string]string{"": "404 404 Not Found\nk8singress, ", tea: "418 tea"} {
		address := serveBy(t, `{
			"handler": "subroute", "routes": [{"handle": [{"handler": "k8singress"}]}]`+errorRoutes+"}")
		status, body := converse(t, address, "GET /", "other")
		if got := fmt.Sprint(status, " ", body); !strings.HasPrefix(got, want) {
			t.Errorf("with the error routes %q: %q, want %q", errorRoutes, got, want)
		}
	}
}

// TestErrorsUnderOtherHandlers checks that the body of an error response passes through handlers that buffer responses.
func TestErrorsUnderOtherHandlers(t *testing.T) {
	for _, around := range []string{
		`{"handler": "templates"}`, `{"handler": "encode", "encodings": {"gzip": {}}}`,
		`{"handler": "intercept", "handle_response": [{"match": {"status_code": [500]}, "routes": []}]}`,
	} {
		address := serveBy(t, around+`, {"handler": "k8singress"}`)
		status, body := converse(t, address, "GET /", "other")
		if got := fmt.Sprint(status, " ", body); !strings.HasPrefix(got, "404 404 Not Found\nk8singress, ") {
			t.Errorf("%s: %q", around, got)
		}
	}
}
