package featuretests

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

// TestRedirectToHTTPS checks the requests in testdata/redirect/table.txt.
func TestRedirectToHTTPS(t *testing.T) {
	in := startRedirecting(t)
	_, port, err := net.SplitHostPort(in.https)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Open("testdata/redirect/table.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	asked, listeners := 0, []*ingress{in, in.speaking(t, plain2)}
	for scanner := bufio.NewScanner(file); scanner.Scan(); {
		line := strings.TrimSpace(scanner.Text())
		switch keys, isConfigMap := strings.CutPrefix(line, "configmap"); {
		case line == "" || strings.HasPrefix(line, "#"):
		case isConfigMap:
			in.globalKeys(strings.Fields(keys)...)
		default:
			asked++
			question, want, _ := strings.Cut(line, " -> ")
			want = strings.ReplaceAll(want, "PORT", port)
			for _, in := range listeners {
				if got := in.redirected(strings.Fields(question)); got != want {
					t.Errorf("%s, %s: got %s, want %s", in.version, question, got, want)
				}
			}
		}
	}
	if asked < 50 {
		t.Errorf("only %d requests", asked)
	}
}

func startRedirecting(t *testing.T) *ingress {
	t.Helper()
	ingresses, err := os.ReadFile("testdata/redirect/ingresses.yaml")
	if err != nil {
		t.Fatal(err)
	}
	ip, port := backend(t, "web")
	return start(t, join(service("web", port, ip), service("nobody", port), string(ingresses)),
		"configmap default/global")
}

// globalKeys replaces the ConfigMap's keys, each "name=value", and waits until they have taken effect.
func (in *ingress) globalKeys(keys ...string) {
	in.Helper()
	var data []string
	for _, key := range keys {
		name, value, _ := strings.Cut(key, "=")
		data = append(data, fmt.Sprintf("%s: %q", name, value))
	}
	// Verdicts are published when their objects have taken effect, and this key causes one.
	marker := fmt.Sprintf("marker-%d", time.Now().UnixNano())
	in.write("configmap.yaml", global(append(data, marker+`: ""`)...))
	in.awaitVerdict("ConfigMap/default/global", "UnknownKey", marker)
}

// redirected sends a request for a host and a path with headers, and returns the status and the Location.
func (in *ingress) redirected(question []string) string {
	in.Helper()
	request, err := http.NewRequestWithContext(in.Context(), http.MethodGet, "http://"+in.http, nil)
	if err != nil {
		in.Fatal(err)
	}
	// Send the target unchanged, which url.Parse would change.
	request.URL.Opaque = question[1]
	request.Host = question[0]
	for _, header := range question[2:] {
		name, value, _ := strings.Cut(header, "=")
		request.Header.Set(name, value)
	}
	response, err := in.client.Do(request)
	if err != nil {
		in.Fatal(err)
	}
	got := read(in, response)
	if got.header.Get("Strict-Transport-Security") != "" {
		in.Errorf("%v: HSTS over HTTP", question)
	}
	return strings.TrimSpace(fmt.Sprintf("%d %s", got.status, got.header.Get("Location")))
}

// TestRedirectOfOtherPaths checks the redirect to HTTPS of paths that no Ingress of their host defines. Over HTTPS, the
// default backend serves them, if there is one.
func TestRedirectOfOtherPaths(t *testing.T) {
	ip, port := backend(t, "web")
	at := func(name, host, path, tls string, annotations ...string) string {
		return strings.Replace(annotate(rule(name, host, "Prefix", path, "web"), annotations...), "spec:",
			"spec:\n  tls: "+tls, 1)
	}
	in := start(t, class+service("web", port, ip)+
		at("own", "own.example", "/app", "[{hosts: [own.example]}]", "server-alias", "alias.example")+
		at("wild", "*.wild.example", "/app", "[{hosts: ['*.wild.example']}]", "preserve-trailing-slash", "true")+
		at("plain", "plain.example", "/app", "[]")+
		at("kept", "off.example", "/app", "[{hosts: [off.example]}]", "ssl-redirect", "false")+
		at("forced", "forced.example", "/app", "[]", "force-ssl-redirect", "true")+
		at("any", "", "/app", "[]", "force-ssl-redirect", "true"), "configmap default/global")
	redirects := map[string]string{
		"own.example/other/": "own.example/other", "own.example/application?q=1": "own.example/application?q=1",
		"own.example/": "own.example",
		"own.example/.well-known/acme-challenge/x": "own.example/.well-known/acme-challenge/x",
		"alias.example/other":                      "alias.example/other",
		"a.wild.example/other/":                    "a.wild.example/other/",
		"forced.example/other":                     "forced.example/other",
	}
	others := []string{"plain.example/other", "off.example/other", "any.example/other"}
	check := func(t *testing.T, in *ingress, otherwise string, headers ...string) {
		t.Helper()
		for url, location := range redirects {
			want := in.either("308 https://"+location, otherwise)
			if len(headers) > 0 {
				want = otherwise
			}
			if got := in.locationOf(url, headers...); got != want {
				t.Errorf("%s: %s, want %s", url, got, want)
			}
		}
		for _, url := range others {
			if got := in.locationOf(url, headers...); got != otherwise {
				t.Errorf("%s: %s, want %s", url, got, otherwise)
			}
		}
	}
	in.byEachVersion(t, func(t *testing.T, in *ingress) { check(t, in, "404") })
	in.globalKeys("use-forwarded-headers=true")
	in.byEachVersion(t, func(t *testing.T, in *ingress) { check(t, in, "404", "X-Forwarded-Proto: https") })
	in.load("manifests " + in.folder + "\nconfigmap default/global\ndefault_backend default/web")
	in.speaking(t, secure1).becomes("plain.example", "/other", http.StatusOK, "web /other")
	in.byEachVersion(t, func(t *testing.T, in *ingress) { check(t, in, "200") })
	in.globalKeys("no-tls-redirect-locations=/")
	clear(redirects)
	others = append(others, "own.example/other")
	in.byEachVersion(t, func(t *testing.T, in *ingress) { check(t, in, "200") })
}

// locationOf returns the status and the Location of the response to a GET request.
func (in *ingress) locationOf(url string, headers ...string) string {
	in.Helper()
	got := in.sendBy(in.client, in.origin(url), http.MethodGet, http.NoBody, headers...)
	return strings.TrimSpace(fmt.Sprint(got.status, " ", got.header.Get("Location")))
}

// TestRedirectBehindBalancer checks requests from a load balancer that has terminated TLS on port 443.
func TestRedirectBehindBalancer(t *testing.T) {
	in := startRedirecting(t)
	in.globalKeys("use-proxy-protocol=true")
	for port, want := range map[string]int{"443": http.StatusOK, "80": http.StatusPermanentRedirect,
		"4430": http.StatusPermanentRedirect} {
		conn, err := net.Dial("tcp", in.http)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn,
			"PROXY TCP4 203.0.113.7 198.51.100.1 4660 %s\r\nGET / HTTP/1.1\r\nHost: forced.example\r\n\r\n", port)
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		if read(t, response).status != want {
			t.Errorf("on port %s: %s, want %d", port, response.Status, want)
		}
	}
}

// TestRedirectWithoutHost checks that a request without a host, which HTTP/1.0 allows, is not redirected.
func TestRedirectWithoutHost(t *testing.T) {
	ip, port := backend(t, "web")
	all := strings.Replace(rule("all", "", "Prefix", "/", "web"), "spec:",
		"  annotations: {nginx.ingress.kubernetes.io/force-ssl-redirect: \"true\"}\nspec:", 1)
	all = strings.Replace(all, "metadata: {name: all}", "metadata:\n  name: all", 1)
	in := start(t, class+service("web", port, ip)+all)
	conn, err := net.Dial("tcp", in.http)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "GET /secret HTTP/1.0\r\n\r\n")
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := read(t, response); got.status != http.StatusBadRequest {
		t.Errorf("got %d %s", got.status, got.body)
	}
}
