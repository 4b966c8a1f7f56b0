package featuretests

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// errorKind is a way in which the controller rejects a request. A request for path "/" of the host NAME.example, where
// NAME is the name of the Ingress, gets it.
type errorKind struct {
	ingress string
	// annotations configure the Ingress, as alternating keys and values.
	annotations []string
	// path is appended to the host. The request has the method POST if it has a body.
	path, body string
	// secure is true if the request needs TLS. server is the server name of the TLS connection, if it is not the host.
	secure bool
	server string
	status int
	reason string
}

// errorKinds returns the kinds of errors. auth is the URL of a service that rejects all requests.
func errorKinds(auth string) []errorKind {
	return []errorKind{
		{ingress: "empty", status: 503, reason: "the backend has no available endpoint"},
		{ingress: "denied", annotations: []string{"denylist-source-range", "0.0.0.0/0,::/0"}, status: 403,
			reason: "clients with this address are not allowed"},
		{ingress: "password", annotations: []string{"auth-type", "basic", "auth-secret", "users"}, status: 401,
			reason: "the request has no user name and password"},
		{ingress: "wrong", annotations: []string{"auth-type", "basic", "auth-secret", "users"}, status: 401,
			reason: "the user name or the password is wrong"},
		{ingress: "external", annotations: []string{"auth-url", auth}, status: 401,
			reason: "external authentication: the request was rejected"},
		{ingress: "rate", annotations: []string{"limit-rpm", "1", "limit-burst-multiplier", "1"}, status: 429,
			reason: "the limit of 1 requests per minute is exceeded"},
		{ingress: "large", annotations: []string{"proxy-body-size", "2"}, body: "large", status: 413,
			reason: "the request body has 5 bytes, and the limit is 2"},
		{ingress: "inside", path: "/inside", annotations: []string{"server-snippet", "location /inside { internal; }"},
			status: 404, reason: "the location is internal: only rewrites and error pages lead to it"},
		{ingress: "returned", annotations: []string{"configuration-snippet", "return 410;"}, status: 410,
			reason: "a snippet returns this status"},
		{ingress: "closed", annotations: []string{"limit-rps", "many"}, status: 503,
			reason: "the configuration returns this status for the path: the verdicts on the Ingress may say why"},
		{ingress: "repaired", annotations: []string{"k8singress.io/maintenance", "true"}, status: 503,
			reason: "the Ingress is in maintenance, and the client's address is not exempt"},
		{ingress: "chained", annotations: []string{"k8singress.io/chains", "teapot"}, status: 418, reason: "no coffee"},
		{ingress: "mutual", annotations: []string{"auth-tls-secret", "default/ca"}, secure: true,
			status: 400, reason: "the client sent no certificate"},
		{ingress: "misdirected", annotations: []string{"auth-tls-secret", "default/ca"}, secure: true,
			server: "empty.example", status: 421, reason: "the TLS connection was opened for another host, which may " +
				"have other rules about client certificates"},
	}
}

// errorLine is a line of the log about an error of the controller.
type errorLine struct {
	Level, Logger, Reason, Namespace, Ingress, Client, Host, Path string
	Status                                                        int
	ID                                                            string `json:"request_id"`
}

// errorIDs finds the request ID in a body: as text, HTML or JSON.
var errorIDs = regexp.MustCompile(`request ID (?:<code>)?([^\s<]+)|"request_id":"([^"]+)"`)

// TestEachErrorHasOneLine checks that the request ID in the body of each kind of error leads to exactly one line in the
// log, with the Ingress and the reason, whether the controller or Caddy's HTTP server handles the request. The lines
// contain no secrets, and the documentation has all reasons.
func TestEachErrorHasOneLine(t *testing.T) {
	in, kinds, log := startWithErrors(t)
	documented, err := os.ReadFile("../../../docs/error-pages.md")
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]errorKind{}
	for _, version := range []string{plain1, secure2, byCaddy} {
		for i, k := range kinds {
			if k.secure && !hasTLS(version) {
				continue
			}
			accept := []string{"*/*", "text/html", "application/json"}[i%3]
			ids[in.speaking(t, version).errorOf(t, &k, accept)] = k
		}
	}
	lines := in.errorLines(log, len(ids))
	for id, k := range ids {
		want := errorLine{"info", "k8singress.http", k.reason, "default", k.ingress, "127.0.0.1",
			k.ingress + ".example", "/" + strings.TrimPrefix(k.path, "/"), k.status, id}
		if k.ingress == "empty" {
			want.Level = "error"
		}
		got := lines[id]
		if k.ingress == "chained" && len(got) == 1 {
			// Caddy puts the place in its code before the text.
			_, got[0].Reason, _ = strings.Cut(got[0].Reason, "HTTP 418: ")
		}
		if len(got) != 1 || got[0] != want {
			t.Errorf("%s: the lines are %+v, want %+v", k.ingress, got, want)
		}
		if text := regexp.MustCompile(`\d+`).ReplaceAllString(k.reason, "N"); k.ingress != "chained" &&
			!strings.Contains(string(documented), text) {
			t.Errorf("docs/error-pages.md lacks the reason %q", text)
		}
	}
}

// startWithErrors starts a controller with an Ingress for each kind of error. log is the path of its log.
func startWithErrors(t *testing.T) (in *ingress, kinds []errorKind, log string) {
	t.Helper()
	ip, port := endpointOf(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
	kinds = errorKinds("http://" + ip + ":" + port)
	in, log = newIngress(t), filepath.Join(t.TempDir(), "errors.log")
	manifests := class + service("one", port, ip) + service("none", "1") + htpasswd("users", alicesLine) +
		caSecret("ca", fixture.Authority(t, nil, "root")) +
		allowingSnippets(`disable-access-log: "true"`, `limit-req-status-code: "429"`)
	for _, k := range kinds {
		to := "one"
		if k.ingress == "empty" {
			to = "none"
		}
		manifests += annotated(k.ingress, k.ingress+".example", to, k.annotations...)
	}
	in.writeAnything("manifests.yaml", manifests)
	in.loadCaddyfile(fmt.Sprintf("{\nadmin %s\nlog default {\noutput file %s\n}\nk8singress {\nhttp %s\nhttps %s\n"+
		"manifests %s\nconfigmap default/global\nchain teapot {\nerror \"no coffee\" 418\n}\n}\n}\n", in.admin, log,
		in.http, in.https, in.folder))
	in.awaitReady()
	return in, kinds, log
}

// errorLines waits until a log has lines with a number of request IDs. It returns the lines by their ID.
func (in *ingress) errorLines(log string, ids int) map[string][]errorLine {
	in.Helper()
	lines := map[string][]errorLine{}
	in.eventually("the lines", func() error {
		text, err := os.ReadFile(log)
		clear(lines)
		for entry := range bytes.Lines(text) {
			var line errorLine
			if err := json.Unmarshal(entry, &line); err != nil {
				return err
			}
			// Caddy's own line about a failure has the whole URI.
			if line.Logger != "http.log.error" && bytes.Contains(entry, []byte("hidden")) {
				return fmt.Errorf("the log has a secret of a client: %s", entry)
			}
			if line.Namespace != "" && line.ID != "" {
				lines[line.ID] = append(lines[line.ID], line)
			}
		}
		if len(lines) < ids {
			return fmt.Errorf("there are %d of %d in %s", len(lines), ids, text)
		}
		return err
	})
	return lines
}

// errorOf sends requests until one gets the error, and returns the request ID in its body. If the body has none,
// because clients may compare it or because Caddy sends it, this is the ID of the request.
func (in *ingress) errorOf(t *testing.T, k *errorKind, accept string) (id string) {
	t.Helper()
	config := anybody()
	config.ServerName = k.server
	client := in.clientOf(t, in.version, config)
	in.eventually("the error of "+k.ingress, func() error {
		method, body := http.MethodGet, io.Reader(nil)
		if k.body != "" {
			method, body = http.MethodPost, strings.NewReader(k.body)
		}
		request, err := http.NewRequestWithContext(t.Context(), method,
			in.origin(k.ingress+".example")+k.path+"?token=hidden", body)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Accept", accept)
		if id = ""; k.status == http.StatusBadRequest || in.version == byCaddy {
			id = k.ingress + "-of-the-client"
			request.Header.Set("X-Request-Id", id)
		}
		if k.ingress == "wrong" {
			request.SetBasicAuth("alice", "hidden")
		}
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if response.StatusCode != k.status {
			return errors.Join(err, fmt.Errorf("it is %d %q", response.StatusCode, text))
		}
		if found := errorIDs.FindSubmatch(text); found != nil {
			id = string(found[1]) + string(found[2])
		}
		if id == "" {
			t.Errorf("%s: the body has no request ID: %q", k.ingress, text)
		}
		return err
	})
	return id
}
