package k8singress_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

const nothing = `{"apps":{"k8singress":{"live":{}}}}`

var routes = []string{"config", "status", "objects"}

// app returns the JSON of an app that does not listen on any port.
func app(more string) string {
	return `{"k8singress":{"http":[],"https":[],"admin":"off"` + more + `}}`
}

func TestAdminWithoutAnApp(t *testing.T) {
	p := start(t, socket(t), `{}`)
	for _, route := range routes {
		got := p.ask(http.MethodGet, route, "")
		if got.status != http.StatusNotFound || !strings.Contains(got.body, "no k8singress app") {
			t.Errorf("GET %s: %d %s", route, got.status, got.body)
		}
	}
}

func TestAdminMethods(t *testing.T) {
	p := start(t, socket(t), app(""))
	for _, route := range routes {
		for _, method := range []string{http.MethodPost, http.MethodDelete, http.MethodPatch, http.MethodPut,
			http.MethodHead} {
			got, want := p.ask(method, route, nothing), http.StatusMethodNotAllowed
			if method == http.MethodHead || method == http.MethodPut && route == "config" {
				want = http.StatusOK
			}
			if got.status != want || method == http.MethodHead && got.body != "" {
				t.Errorf("%s %s: %d %s, want %d", method, route, got.status, got.body, want)
			}
			if allow := got.header.Get("Allow"); (allow != "") != (want == http.StatusMethodNotAllowed) {
				t.Errorf("%s %s: Allow is %q", method, route, allow)
			}
		}
	}
}

// TestAdminResponses checks the fields of the responses, because other programs read them.
func TestAdminResponses(t *testing.T) {
	folder, err := filepath.Abs(manifests("errors"))
	if err != nil {
		t.Fatal(err)
	}
	p := start(t, socket(t), app(fmt.Sprintf(`,"source":{"manifests":{"dir":%q}}`, folder)))
	p.awaitReady()
	var status map[string]any
	p.decode("status", &status)
	if generation, ok := status["generation"].(float64); !ok || generation < 1 {
		t.Errorf("generation %v", status["generation"])
	}
	delete(status, "generation")
	want := map[string]any{
		"ready": true, "leader": false, "problems": map[string]any{"error": 3.0},
		"objects": map[string]any{
			"Ingress": 3.0, "IngressClass": 0.0, "Service": 1.0, "EndpointSlice": 0.0, "Secret": 1.0, "ConfigMap": 0.0,
			"Namespace": 0.0,
			"Pod":       0.0, "Node": 0.0,
		},
	}
	if diff := cmp.Diff(want, status); diff != "" {
		t.Errorf("status, -want +got:\n%s", diff)
	}
	var objects []map[string]any
	p.decode("objects", &objects)
	if len(objects) != 3 {
		t.Fatalf("%d objects: %v", len(objects), objects)
	}
	// The running controller reports a Service without endpoints; lint does not.
	problems := objects[0]["problems"]
	if want := []any{map[string]any{
		"severity": "info", "reason": "NoEndpoints",
		"message": "the Service default/web has no ready endpoints: requests get 503",
	}}; !reflect.DeepEqual(problems, want) {
		t.Errorf("problems of an Ingress without endpoints: %v", problems)
	}
	delete(objects[0], "problems")
	if diff := cmp.Diff(map[string]any{"object": reference("good"), "accepted": true}, objects[0]); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if refused := objects[1]; refused["accepted"] != false || !reflect.DeepEqual(refused["object"], reference("port")) {
		t.Errorf("an Ingress with a wrong port: %v", refused)
	}
}

func reference(name string) map[string]any {
	return map[string]any{"kind": "Ingress", "namespace": "default", "name": name}
}

func (p *process) decode(route string, into any) {
	p.Helper()
	got := p.ask(http.MethodGet, route, "")
	if kind := got.header.Get("Content-Type"); got.status != http.StatusOK || kind != "application/json" {
		p.Fatalf("GET %s: %d, %s, %s", route, got.status, kind, got.body)
	}
	if err := json.Unmarshal([]byte(got.body), into); err != nil {
		p.Fatal(err)
	}
}

// TestAdminWithoutObjects checks that no objects are an empty list and not null.
func TestAdminWithoutObjects(t *testing.T) {
	p := start(t, socket(t), app(""))
	if got := p.ask(http.MethodGet, "objects", ""); got.status != http.StatusOK || got.body != "[]\n" {
		t.Errorf("%d %q", got.status, got.body)
	}
}

func TestPutIntoAnEmptyProcess(t *testing.T) {
	port := fixture.Port(t)
	for name, address := range map[string]string{"socket": socket(t), "port": fixture.Address(t),
		"all interfaces": ":" + port} {
		t.Run(name, func(t *testing.T) {
			p := start(t, address, `{}`)
			document := `{"apps":{"k8singress":{"http":[],"https":[],"ingress_class":"public","live":{}}}}`
			if got := p.ask(http.MethodPut, "config", document); got.status != http.StatusOK ||
				!strings.Contains(got.body, `"ready":true`) {
				t.Fatalf("%d %s", got.status, got.body)
			}
			var whole struct {
				Apps struct{ K8singress map[string]any }
			}
			p.decode("config", &whole)
			if class := whole.Apps.K8singress["ingress_class"]; class != "public" {
				t.Errorf("the class is %v", class)
			}
		})
	}
}

func TestPutIsRefused(t *testing.T) {
	for name, c := range map[string]struct{ document, want string }{
		"source": {`{"apps":{"k8singress":{"source":{"manifests":{"dir":"/"}},"live":{}}}}`,
			`the configuration contains \"source\"`},
		"not JSON":     {`{"apps":`, "decoding the document"},
		"no document":  {``, "decoding the document"},
		"wrong type":   {`{"apps":{"k8singress":{"http":":80","live":{}}}}`, "decoding the document"},
		"nothing live": {`{"apps":{"http":{}}}`, "the configuration does not contain apps.k8singress.live"},
		"bad address":  {`{"apps":{"k8singress":{"http":["127.0.0.1:99999"],"https":[],"live":{}}}}`, "99999"},
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t, socket(t), `{}`)
			got := p.ask(http.MethodPut, "config", c.document)
			if got.status != http.StatusBadRequest || !strings.Contains(got.body, c.want) {
				t.Errorf("%d %s, want %q", got.status, got.body, c.want)
			}
			// Nothing is left of the app.
			if got := p.ask(http.MethodGet, "status", ""); got.status != http.StatusNotFound {
				t.Errorf("afterwards: %d %s", got.status, got.body)
			}
		})
	}
}

// TestPutOfTooMuch checks that a document that is too large is rejected before its body is sent.
func TestPutOfTooMuch(t *testing.T) {
	p := start(t, socket(t), app(""))
	body, end := io.Pipe()
	defer end.Close()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, p.url("config"), body)
	if err != nil {
		t.Fatal(err)
	}
	request.ContentLength = 1 << 40
	if got, err := p.do(request); err != nil || got.status != http.StatusRequestEntityTooLarge {
		t.Errorf("%d %s, error %v", got.status, got.body, err)
	}
}
