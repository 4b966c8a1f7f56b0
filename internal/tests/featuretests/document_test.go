package featuretests

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// document returns the document of the running process.
func (in *ingress) document() []byte {
	in.Helper()
	response, err := in.admins.Get("http://" + in.admin + "/k8singress/config")
	if err != nil {
		in.Fatal(err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		in.Fatalf("%s: %s %v", response.Status, data, err)
	}
	return data
}

// stop stops Caddy's configuration, and with it the controller.
func (in *ingress) stop() {
	in.Helper()
	if err := caddy.Stop(); err != nil {
		in.Fatal(err)
	}
	in.admins.CloseIdleConnections()
}

// put sends a document to the running process, and returns the status and the body of the response.
func (in *ingress) put(document []byte) (int, string) {
	in.Helper()
	var response *http.Response
	// Loading a configuration replaces the listener of the admin API, which resets connections in its queue.
	in.eventually("the admin API", func() error {
		request, err := http.NewRequestWithContext(in.Context(), http.MethodPut,
			"http://"+in.admin+"/k8singress/config",
			bytes.NewReader(document))
		if err != nil {
			return err
		}
		response, err = in.admins.Do(request) //nolint:bodyclose // Closed below.
		return err
	})
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		in.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// conversations are requests whose responses differ between configurations.
var conversations = []struct{ host, path string }{
	{"shop.example", "/"}, {"shop.example", "/api/x?y=z"}, {"shop.example", "/apix"}, {"rewrite.example", "/v1/users"},
	{"rewrite.example", "/other"}, {"empty.example", "/"}, {"gone.example", "/"}, {"x.wild.example", "/"},
}

func (in *ingress) converse() string {
	in.Helper()
	var all strings.Builder
	for _, c := range conversations {
		got := in.get(c.host, c.path)
		fmt.Fprintf(&all, "%s%s: %d %s\n", c.host, c.path, got.status, got.body)
	}
	return all.String()
}

// whole returns a folder that covers every kind of entry of a document. port is the TCP port.
func whole(t *testing.T, port string) string {
	t.Helper()
	ip, one := backend(t, "one")
	_, two := backend(t, "two")
	rewriting := strings.Replace(rule("rewriting", "rewrite.example", "ImplementationSpecific", "/v1/(.*)", "two"),
		"{name: rewriting}",
		`{name: rewriting, annotations: {nginx.ingress.kubernetes.io/rewrite-target: "/$1"}}`, 1)
	return class + service("one", one, ip) + service("two", two, ip) + service("empty", one) +
		rule("web", "shop.example", "Prefix", "/", "one") + rule("api", "shop.example", "Prefix", "/api", "two") +
		rule("empty", "empty.example", "Prefix", "/", "empty") + rule("wild", "*.wild.example", "Prefix", "/", "two") +
		rewriting + tcpServices(fmt.Sprintf("%q: default/one:80", port))
}

func TestDocumentOfOneProcessServesTheSameInAnother(t *testing.T) {
	port := fixture.Port(t)
	in := start(t, whole(t, port), "tcp_services default/tcp-services", "stream_bind 127.0.0.1")
	before := in.converse() + in.overTCP(port)
	document := in.document()
	if bytes.Contains(document, []byte(in.folder)) {
		t.Error("the document names the source")
	}
	in.stop()

	// An empty process: Caddy with nothing but its admin API.
	if err := caddy.Load(fmt.Appendf(nil, `{"admin":{"listen":%q}}`, in.admin), true); err != nil {
		t.Fatal(err)
	}
	if status, text := in.put(document); status != http.StatusOK {
		t.Fatalf("PUT: %d %s", status, text)
	}
	if after := in.converse() + in.overTCP(port); after != before {
		t.Errorf("the answers were\n%s\nand are\n%s", before, after)
	}
	if again := in.document(); !sameJSON(t, document, again) {
		t.Errorf("the document was\n%s\nand is\n%s", document, again)
	}
	// The next one replaces it.
	if status, text := in.put([]byte(`{"apps":{"k8singress":{"live":{}}}}`)); status != http.StatusOK {
		t.Fatalf("PUT: %d %s", status, text)
	}
	in.expect("shop.example", "/", http.StatusNotFound, "")
}

// TestDocumentRunsAsConfiguration checks `caddy k8singress render -f DIR >caddy.json; caddy run --config caddy.json`.
func TestDocumentRunsAsConfiguration(t *testing.T) {
	port := fixture.Port(t)
	in := start(t, whole(t, port), "tcp_services default/tcp-services", "stream_bind 127.0.0.1")
	before := in.converse()
	var document map[string]any
	if err := json.Unmarshal(in.document(), &document); err != nil {
		t.Fatal(err)
	}
	document["admin"].(map[string]any)["listen"] = in.admin
	in.stop()
	config, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	in.reload(config)
	in.awaitReady()
	if after := in.converse(); after != before {
		t.Errorf("the answers were\n%s\nand are\n%s", before, after)
	}
}

func TestDocumentIsRefused(t *testing.T) {
	in := start(t, class)
	if status, text := in.put([]byte(`{"apps":{"k8singress":{"live":{}}}}`)); status != http.StatusConflict {
		t.Errorf("a process with a source answers %d %s", status, text)
	}
	in.load("source none")
	for _, bad := range []string{``, `{}`, `[1]`, `{"apps":{"k8singress":{}}}`,
		`{"apps":{"k8singress":{"live":{"hosts":1}}}}`} {
		if status, text := in.put([]byte(bad)); status != http.StatusBadRequest {
			t.Errorf("%s: %d %s", bad, status, text)
		}
	}
}

func sameJSON(t *testing.T, a, b []byte) bool {
	t.Helper()
	var canonical [2]string
	for i, data := range [][]byte{a, b} {
		var v any
		if err := json.Unmarshal(data, &v); err != nil {
			t.Fatal(err)
		}
		// The admin address is the receiver's own.
		delete(v.(map[string]any)["apps"].(map[string]any)["k8singress"].(map[string]any), "admin")
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		canonical[i] = string(text)
	}
	return canonical[0] == canonical[1]
}
