package featuretests

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// TestAccessLog checks that each request is logged as one line in ingress-nginx's format, in each version of HTTP. An
// Ingress, a path and unknown hosts can be excluded, and the format changes without a reload.
func TestAccessLog(t *testing.T) {
	ip, port := backend(t, "one")
	path := filepath.Join(t.TempDir(), "access.log")
	objects := class + service("one", port, ip) + rule("a", "a.example", "Prefix", "/", "one") +
		strings.Replace(rule("quiet", "quiet.example", "Prefix", "/", "one"), "{name: quiet}",
			`{name: quiet, annotations: {nginx.ingress.kubernetes.io/enable-access-log: "false"}}`, 1)
	in := start(t, objects+global("access-log-path: "+path, "skip-access-log-urls: /ready"),
		"configmap default/global", accessLogOn)
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		in.get("quiet.example", "/")
		in.get("nobody.example", "/")
		in.get("a.example", "/ready")
		in.get("a.example", "/x?y=%22")
		want := regexp.MustCompile(
			`^127\.0\.0\.1 - - \[../.../....:..:..:.. [+-]....\] "GET /x\?y=%22 HTTP/[123]\.[01]" 200 [0-9]+ "-" ` +
				`"(Go-http-client/[12]\.[01]|quic-go.*)" [0-9]+ [0-9]\.[0-9]{3} \[default-one-80\] \[-\] ` +
				`127\.0\.0\.1:[0-9]+ [0-9]+ [0-9]\.[0-9]{3} 200 [0-9a-f]{32}` + "\n$")
		in.eventually("a line", func() error {
			text, err := os.ReadFile(path)
			if err == nil && !want.Match(text) {
				err = fmt.Errorf("the log has %q", text)
			}
			return err
		})
	})
	in.write("manifests.yaml", objects+global("access-log-path: "+path,
		"log-format-upstream: '{\"of\": \"$http_user_agent\", \"no\": \"$nothing\"}'",
		`log-format-escape-json: "true"`))
	in.eventually("another format", func() error {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			return err
		}
		in.sendBy(in.client, in.origin("a.example"), http.MethodGet, nil, `User-Agent: a"b`)
		text, err := os.ReadFile(path)
		if err == nil && string(text) != `{"of": "a\"b", "no": ""}`+"\n" {
			err = fmt.Errorf("the log has %q", text)
		}
		return err
	})
	in.eventually("a verdict on the variable that there is not", func() error {
		if reasons := in.reasons("ConfigMap/default/global"); len(reasons) != 1 {
			return fmt.Errorf("the ConfigMap is told %v", reasons)
		}
		return nil
	})
	in.write("manifests.yaml", objects+global("access-log-path: "+path, "log-format-upstream: $host $request_uri"))
	logs := func(want string) func() error {
		return func() error {
			text, err := os.ReadFile(path)
			if err == nil && !strings.HasSuffix(string(text), want+"\n") {
				err = fmt.Errorf("the log has %q", text)
			}
			return err
		}
	}
	in.eventually("the format of hosts", func() error {
		in.get("a.example", "/y")
		return logs("a.example /y")()
	})
	in.byHTTP1(t, func(_ *testing.T, in *ingress) {
		line := "a.example /" + strings.ReplaceAll(in.version, " ", "-")
		in.raw("GET http://" + strings.Replace(line, " ", "", 1) +
			" HTTP/1.1\r\nHost: b.example\r\nConnection: close\r\n\r\n")
		in.eventually("the host of the URL", logs(line))
	})
}

// refused508 matches the line of a request that has gone round, with and without a body of the response.
var refused508 = regexp.MustCompile(` 508 [0-9]+ `)

// TestAccessLogOfRefusals checks that a request is logged even if it is rejected before routing.
func TestAccessLogOfRefusals(t *testing.T) {
	ip, port := backend(t, "one")
	path := filepath.Join(t.TempDir(), "access.log")
	in := start(t, class+service("one", port, ip)+rule("a", "a.example", "Prefix", "/", "one")+
		global("access-log-path: "+path),
		"configmap default/global", accessLogOn)
	loop := "CDN-Loop: " + strings.Repeat("k8singress, ", 8) + "last"
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if got := in.sendBy(in.client, in.origin("a.example"), http.MethodGet, nil,
			loop); got.status != http.StatusLoopDetected {
			t.Errorf("a request that goes round gets %d", got.status)
		}
		in.eventually("a line", func() error {
			text, err := os.ReadFile(path)
			if err == nil && !refused508.Match(text) {
				err = fmt.Errorf("the log has %q", text)
			}
			return err
		})
	})
}

// TestAccessLogOfRewrites checks that a log format can record the rewritten path of each request, which is the purpose
// of enable-rewrite-log in ingress-nginx.
func TestAccessLogOfRewrites(t *testing.T) {
	ip, port := backend(t, "one")
	path := filepath.Join(t.TempDir(), "access.log")
	in := start(t, class+service("one", port, ip)+annotated("a", "a.example", "one", "rewrite-target", "/new",
		"enable-rewrite-log", "true")+
		global("access-log-path: "+path, "log-format-upstream: $request_uri $uri"),
		"configmap default/global", accessLogOn)
	in.expect("a.example", "/old?x", http.StatusOK, "one /new?x")
	in.eventually("a line", func() error {
		text, err := os.ReadFile(path)
		if err == nil && string(text) != "/old?x /new\n" {
			err = fmt.Errorf("the log has %q", text)
		}
		return err
	})
	if reasons := in.reasons("Ingress/default/a"); len(reasons) != 0 {
		t.Errorf("the Ingress gets %v", reasons)
	}
}

// TestEachRequestHasOneLine checks that each request has one line in the access log and one count, whether an endpoint,
// Caddy or the parser responds. A path that only looks like a challenge of a certificate authority is routed like any
// other.
func TestEachRequestHasOneLine(t *testing.T) {
	ip, port := backend(t, "one")
	path := filepath.Join(t.TempDir(), "access.log")
	in := start(t, class+service("one", port, ip)+rule("a", "a.example", "Prefix", "/", "one")+
		global("access-log-path: "+path, "log-format-upstream: $status $request_uri"),
		"configmap default/global", accessLogOn)
	in.expect("a.example", "/", http.StatusOK, "one /")
	in.eventually("the first line", func() error {
		if n := len(linesOf(t, path)); n != 1 {
			return fmt.Errorf("there are %d lines", n)
		}
		return nil
	})
	in.byHTTP1(t, func(t *testing.T, in *ingress) {
		for _, c := range []struct{ sent, status string }{
			{get("/plain"), "200"},
			{get("/.well-known/acme-challenge/token"), "200"},
			{get("/.well-known/pki-validation/file.txt"), "200"},
			{get("/.well-known/acme-challenge/../../admin?hidden"), "200"},
			{get("/.well-known/acme-challenge/%2e%2e/%2e%2e/admin"), "200"},
			{get("/.well-known/acme-challengeX/y"), "200"},
			{get("/.well-known/pki-validation/a/b"), "200"},
			{strings.Replace(get("/.well-known/acme-challenge/token"), "GET", "POST", 1), "200"},
			{strings.Replace(get("/"), "Host: a.example", "Host: a b", 1), "400"},
			{"GET / HTTP/3.7\r\n\r\n", "505"},
			{"GET /\x00 HTTP/1.1\r\nHost: a.example\r\n\r\n", "400"},
			{get("/long", "X-Long: "+strings.Repeat("x", 40_000)), "431"},
			{get("/coded", "Transfer-Encoding: gzip"), "501"},
		} {
			lines, counted := linesOf(t, path), in.answered()
			d := in.connect()
			d.say("%s", c.sent)
			if got := d.hear(http.MethodGet); !strings.HasPrefix(got, c.status) {
				t.Errorf("%.80q gets %q, want %s", c.sent, got, c.status)
			}
			in.eventually("the line", func() error {
				if now := linesOf(t, path); len(now) != len(lines)+1 ||
					!strings.HasPrefix(now[len(now)-1], c.status+" ") {
					return fmt.Errorf("%.80q: the new lines are %q", c.sent, now[min(len(lines), len(now)):])
				}
				return nil
			})
			if n := in.answered() - counted; n != 1 {
				t.Errorf("%.80q is counted %v times", c.sent, n)
			}
		}
	})
	lines := len(linesOf(t, path))
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		in.expect("a.example", "/.well-known/acme-challenge/token", http.StatusOK, "")
		lines++
		in.eventually("the line", func() error {
			if n := len(linesOf(t, path)); n != lines {
				return fmt.Errorf("there are %d lines, want %d", n, lines)
			}
			return nil
		})
	})
}

// linesOf returns the lines of a file, or nil if the file does not exist yet.
func linesOf(t *testing.T, path string) []string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return strings.FieldsFunc(string(text), func(r rune) bool { return r == '\n' })
}

var settled = regexp.MustCompile("(?m)^/settled-.*\n")

// TestAccessLogKeys checks the ConfigMap keys that set the path of the access log, disable it, escape values, and log
// requests that match no Ingress. Each request that must not be logged is sent before a request that is logged, so the
// test knows when to read the file.
func TestAccessLogKeys(t *testing.T) {
	ip, port := backend(t, "one")
	folder := t.TempDir()
	in := start(t, class+service("one", port, ip)+rule("a", "a.example", "Prefix", "/", "one"),
		"configmap default/global", accessLogOn)
	path := func(name string) string { return filepath.Join(folder, name) }
	const format = "log-format-upstream=$request_uri $http_user_agent"
	sends := func(host, path string) {
		t.Helper()
		in.sendBy(in.client, in.origin(host)+path, http.MethodGet, nil, `User-Agent: "`)
	}
	lines := func(name, want string) {
		t.Helper()
		in.eventually("the lines of "+name, func() error {
			sends("a.example", "/end")
			text, err := os.ReadFile(path(name))
			before, _, ended := strings.Cut(settled.ReplaceAllString(string(text), ""), "/end ")
			if err == nil && (!ended || before != want) {
				err = fmt.Errorf("before the end there is %q, want %q", before, want)
			}
			return err
		})
	}
	in.globalKeys("access-log-path="+path("all"), "http-access-log-path="+path("http"), format)
	sends("nobody.example", "/unknown")
	sends("a.example", "/first")
	lines("http", "/first \\x22\n")
	if text, err := os.ReadFile(path("all")); err == nil && len(text) > 0 {
		t.Errorf("access-log-path has %q beside http-access-log-path", text)
	}
	for i, off := range []string{"disable-access-log=true", "disable-http-access-log=true"} {
		name := fmt.Sprint("off", i)
		in.globalKeys("access-log-path="+path(name), format, off)
		sends("a.example", "/off")
		in.globalKeys("access-log-path="+path(name), format, "log-format-escape-none=true",
			"enable-access-log-for-default-backend=true")
		sends("nobody.example", "/unknown")
		lines(name, "/unknown \"\n")
	}
}

// TestSyslog checks that access log lines are sent to the server that the ConfigMap names.
func TestSyslog(t *testing.T) {
	ip, port := backend(t, "one")
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	_, at := hostPort(t, server.LocalAddr())
	in := start(t, class+service("one", port, ip)+rule("a", "a.example", "Prefix", "/", "one")+global(
		`enable-syslog: "true"`, "syslog-host: 127.0.0.1", fmt.Sprintf("syslog-port: %q", at),
		"log-format-upstream: $request_uri",
	), "configmap default/global", accessLogOn)
	in.expect("a.example", "/noted", http.StatusOK, "one /noted")
	if err := server.SetReadDeadline(time.Now().Add(fixture.Patience)); err != nil {
		t.Fatal(err)
	}
	datagram := make([]byte, 1<<16)
	n, _, err := server.ReadFrom(datagram)
	if line := string(datagram[:n]); err != nil || !strings.HasPrefix(line, "<190>") ||
		!strings.HasSuffix(line, " nginx: /noted") {
		t.Errorf("%v: the server has %q", err, line)
	}
}
