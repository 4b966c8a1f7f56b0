package featuretests

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// ofHeaders serves a.example with custom-headers. The endpoint sends two headers of its own, and responds with their
// values in the request.
func ofHeaders(t *testing.T, configMap string) *ingress {
	t.Helper()
	ip, port := endpointOf(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header()["X-Own"] = []string{"endpoint", "once more"}
		w.Header().Set("X-Kept", "endpoint")
		fmt.Fprint(w, r.Header.Get("X-Own"))
	})
	return start(t, class+service("one", port, ip)+oneWith("custom-headers: "+configMap), "configmap default/global")
}

// setsHeaders waits for a response with these values of X-Own and X-New.
func (in *ingress) setsHeaders(own, fresh string) {
	in.Helper()
	in.eventually("headers", func() error {
		got := in.send(http.MethodPost, "/", strings.NewReader("body"))
		found, foundFresh := strings.Join(got.header["X-Own"], "|"), strings.Join(got.header["X-New"], "|")
		if got.status != http.StatusOK || found != own || foundFresh != fresh ||
			got.header.Get("X-Kept") != "endpoint" || got.body != "" {
			return fmt.Errorf("%d %q %v, want %q and %q", got.status, got.body, got.header, own, fresh)
		}
		return nil
	})
}

// TestCustomHeaders checks that the headers of a ConfigMap replace the endpoint's, that changes of the ConfigMap and
// of the list of allowed headers take effect without a reload, and that no response lacks a header that should be set.
func TestCustomHeaders(t *testing.T) {
	in := ofHeaders(t, "headers")
	closed := func(reason, message string) {
		t.Helper()
		in.becomes("a.example", "/", http.StatusServiceUnavailable, "")
		in.eventually("verdict", func() error {
			found := in.messages("Ingress/default/a", reason)
			if !slices.ContainsFunc(found, func(m string) bool { return strings.Contains(m, message) }) {
				return fmt.Errorf("got %q, want %s with %q", found, reason, message)
			}
			return nil
		})
	}
	closed("ConfigMapNotFound", "the ConfigMap default/headers does not exist")
	in.write("headers.yaml", configMap("headers", `x-own: "{env.HOME} $host"`, "X-New: a"))
	closed("InvalidAnnotation", "the header X-New is not allowed: add it to global-allowed-response-headers")
	in.write("global.yaml", global("global-allowed-response-headers: X-Own"))
	closed("InvalidAnnotation", "the header X-New is not allowed")
	in.write("global.yaml", global("global-allowed-response-headers: X-Own, x-new"))
	in.byEachVersion(t, func(_ *testing.T, in *ingress) { in.setsHeaders("{env.HOME} $host", "a") })
	in.write("headers.yaml", configMap("headers", "X-New: b"))
	in.setsHeaders("endpoint|once more", "b")
	in.write("headers.yaml", configMap("headers", "X-New: b", `Content-Length: "0"`))
	closed("InvalidAnnotation", "Content-Length")
	in.write("headers.yaml", configMap("headers"))
	in.setsHeaders("endpoint|once more", "")
	in.remove("headers.yaml")
	closed("ConfigMapNotFound", "default/headers")
}

// TestCustomHeadersOfAnotherNamespace checks that headers of a ConfigMap in another namespace are rejected.
func TestCustomHeadersOfAnotherNamespace(t *testing.T) {
	in := ofHeaders(t, "other/headers")
	in.expect("a.example", "/", http.StatusServiceUnavailable, "")
	if found := in.messages("Ingress/default/a", "InvalidAnnotation"); len(found) != 1 ||
		!strings.Contains(found[0], "is not in the namespace of the Ingress") {
		t.Errorf("told is %q", found)
	}
}
