package featuretests

import (
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// refusals maps each status to a chain that rejects requests with it.
var refusals = map[int]string{
	http.StatusUnauthorized: "basic_auth {\nalice " +
		"$2a$04$gj/bX30T0AM0c9ZeaJEwwue8hVgrfiCESbqSco7I3wq0wWM48.IzW\n}",
	http.StatusForbidden:             "error 403",
	http.StatusRequestEntityTooLarge: "request_body {\nmax_size 1\n}",
	http.StatusTeapot:                "error 418",
	http.StatusTooManyRequests:       "error 429",
	http.StatusInternalServerError:   "error \"it broke\"",
	http.StatusServiceUnavailable:    "error 503",
}

// refusing returns manifests with a host for each rejection, such as 401.example, and the chains that they name. The
// hosts also have a filter that replaces the writer of the response.
func refusing(t *testing.T) (manifests, chains string) {
	t.Helper()
	ip, port := backend(t, "one")
	manifests = class + service("one", port, ip)
	for status, text := range refusals {
		name := "refuse" + strconv.Itoa(status)
		chains += fmt.Sprintf("chain %s {\n%s\n}\n", name, text)
		manifests += strings.Replace(rule(name, strconv.Itoa(status)+".example", "Prefix", "/", "one"),
			"{name: "+name+"}",
			"{name: "+name+", annotations: {k8singress.io/chains: "+name+
				", nginx.ingress.kubernetes.io/limit-rate: \"100\"}}", 1)
	}
	return manifests, chains
}

// keepsRefusals checks that each rejection arrives with its status and with the body of the error routes.
func (in *ingress) keepsRefusals(t *testing.T) {
	t.Helper()
	for status := range refusals {
		want := fmt.Sprintf("error page %d", status)
		if got := in.as("", http.MethodPost, strconv.Itoa(status)+".example", "/", "body"); got.status != status ||
			got.body != want {
			t.Errorf("a chain refuses with %d: %d %q", status, got.status, got.body)
		}
	}
	if got := in.get("unknown.example", "/"); got.status != http.StatusNotFound || got.body != "error page 404" {
		t.Errorf("an unknown host: %d %q", got.status, got.body)
	}
}

// TestRefusalsOfChainsInASite checks that a request that a chain rejects keeps its status under handle_errors of a
// site, and that the error routes handle it. Requests for unknown hosts reach them, too.
func TestRefusalsOfChainsInASite(t *testing.T) {
	manifests, chains := refusing(t)
	in := newIngress(t)
	in.write("manifests.yaml", manifests)
	_, port, _ := net.SplitHostPort(in.http)
	in.loadCaddyfile(
		fmt.Sprintf("{\nadmin %s\nauto_https off\nk8singress {\nhttp off\nhttps off\nmanifests %s\n%s}\n}\n"+
			"http://:%s {\nbind 127.0.0.1\nk8singress\nhandle_errors {\nrespond \"error page "+
			"{http.error.status_code}\"\n}\n}\n",
			in.admin, in.folder, chains, port))
	in.awaitReady()
	in.keepsRefusals(t)
}

// TestRefusalsOfChainsUnderErrorsOfAServer checks the same for the controller's own server with `errors` in its JSON,
// over each version of HTTP.
func TestRefusalsOfChainsUnderErrorsOfAServer(t *testing.T) {
	manifests, chains := refusing(t)
	in := start(t, manifests, chains)
	in.reloadWithErrors(map[string]any{}, map[string]any{"body": "error page {http.error.status_code}"})
	in.byEachVersion(t, func(t *testing.T, in *ingress) { in.keepsRefusals(t) })
}

// reloadWithErrors adds error routes with the given static response to the controller's servers, and these top-level
// keys to the configuration.
func (in *ingress) reloadWithErrors(keys, response map[string]any) {
	in.Helper()
	var whole map[string]any
	in.adminJSON("/config/", &whole)
	maps.Copy(whole, keys)
	response["handler"] = "static_response"
	for _, server := range whole["apps"].(map[string]any)["http"].(map[string]any)["servers"].(map[string]any) {
		server.(map[string]any)["errors"] = map[string]any{"routes": []any{
			map[string]any{"handle": []any{response}},
		}}
	}
	config, err := json.Marshal(whole)
	if err != nil {
		in.Fatal(err)
	}
	in.reload(config)
	in.awaitReady()
}

// TestAccessLogAfterErrorRoutes checks that the line of a failed request has the status, the size and the header fields
// that the error routes of the controller's server have sent.
func TestAccessLogAfterErrorRoutes(t *testing.T) {
	ip, port := backend(t, "one")
	path := filepath.Join(t.TempDir(), "access.log")
	in := start(t, class+service("one", port, ip)+annotated("a", "a.example", "one", "k8singress.io/chains", "refuse"),
		"access_log caddy", "chain refuse {\n@no path /no*\nerror @no 403\n}")
	in.reloadWithErrors(map[string]any{"logging": map[string]any{"logs": map[string]any{"access": map[string]any{
		"include": []string{"http.log.access"}, "encoder": map[string]any{"format": "json"},
		"writer": map[string]any{"output": "file", "filename": path},
	}}}}, map[string]any{"status_code": "418", "body": "no tea", "headers": map[string]any{"X-Page": []string{"tea"}}})
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		tag := strings.ReplaceAll(in.version, " ", "-")
		in.expect("a.example", "/no"+tag, http.StatusTeapot, "no tea")
		in.expect("a.example", "/yes"+tag, http.StatusOK, "one /yes"+tag)
		a := in.logged(path, "/no"+tag)
		if got := fmt.Sprintln(a.Status, a.Size, a.RespHeaders["X-Page"], a.Ingress); got != "418 6 [tea] a\n" {
			t.Errorf("the line of the failed request has %s", got)
		}
		if a := in.logged(path, "/yes"+tag); a.Status != http.StatusOK || a.Size == 0 {
			t.Errorf("the line of the other request is %+v", a)
		}
	})
}

// TestErrorRoutesGetAllErrors checks that handle_errors of a site responds to each request that the controller rejects,
// also if a filter rejects it, and that {err.id} is the request ID, which the log line of the error has.
func TestErrorRoutesGetAllErrors(t *testing.T) {
	ip, port := backend(t, "one")
	in := newIngress(t)
	in.writeAnything("manifests.yaml", class+service("one", port, ip)+service("none", port)+
		annotated("denied", "denied.example", "one", "denylist-source-range", "127.0.0.1")+
		annotated("empty", "empty.example", "none")+
		annotated("unchained", "unchained.example", "one", "k8singress.io/chains", "missing")+
		annotated("closed", "closed.example", "one", "k8singress.io/maintenance", "true")+
		annotated("snippet", "snippet.example", "one", "configuration-snippet", "no_such_directive on;")+
		annotated("limited", "limited.example", "one", "limit-rpm", "1", "limit-burst-multiplier", "1"))
	_, port, _ = net.SplitHostPort(in.http)
	in.loadCaddyfile(fmt.Sprintf("{\nadmin %s\nauto_https off\n"+
		"k8singress {\nhttp off\nhttps off\nmanifests %s\n}\n}\nhttp://:%s {\nbind 127.0.0.1\nk8singress\n"+
		"handle_errors {\nrespond \"{err.status_code} {err.id}\"\n}\n}\n", in.admin, in.folder, port))
	in.awaitReady()
	for range 2 {
		in.get("limited.example", "/")
	}
	for host, want := range map[string]int{
		"denied": http.StatusForbidden, "empty": http.StatusServiceUnavailable,
		"unchained": http.StatusServiceUnavailable, "closed": http.StatusServiceUnavailable,
		"snippet": http.StatusServiceUnavailable, "limited": http.StatusServiceUnavailable,
		"unknown": http.StatusNotFound,
	} {
		id := fmt.Sprintf("%032x", host)
		got := in.sendBy(in.client, in.origin(host+".example"), http.MethodGet, nil, "X-Request-ID: "+id)
		if got.status != want || got.body != fmt.Sprint(want, " ", id) {
			t.Errorf("%s: %d %q, want %d with the request ID", host, got.status, got.body, want)
		}
	}
	// Error routes may write the ID into HTML, or evaluate it as a template.
	for _, id := range []string{"{{`HOME`|env}}", "<script>alert(1)</script>", "{env.HOME}"} {
		got := in.sendBy(in.client, in.origin("denied.example"), http.MethodGet, nil, "X-Request-ID: "+id)
		if got.body != "403 " {
			t.Errorf("the request ID %s: %q", id, got.body)
		}
	}
}
