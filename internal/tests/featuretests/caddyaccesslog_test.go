package featuretests

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// access is a line of an access log in Caddy's format.
type access struct {
	Level, Logger, Msg string
	Request            struct {
		Proto, Method, Host, URI string
		ClientIP                 string `json:"client_ip"`
		Headers                  map[string][]string
		TLS                      *struct {
			ServerName string `json:"server_name"`
		}
	}
	BytesRead   int    `json:"bytes_read"`
	UserID      string `json:"user_id"`
	Size        int
	Status      int
	RespHeaders map[string][]string `json:"resp_headers"`
	Namespace   string
	Ingress     string
	Service     string
	Endpoint    string
	RequestID   string `json:"request_id"`
	// Of and Via are fields of log_append.
	Of, Via string
}

// accesses returns the lines of a log file, and empties it.
func accesses(path string) (found []access, err error) {
	text, err := os.ReadFile(path)
	for line := range bytes.Lines(text) {
		var a access
		if err := json.Unmarshal(line, &a); err != nil {
			return nil, fmt.Errorf("%s: %w", line, err)
		}
		found = append(found, a)
	}
	return found, err
}

// logged returns the line of the request for this path, once the log has it. It fails the test if the path has more
// than one line.
func (in *ingress) logged(path, uri string) (found access) {
	in.Helper()
	in.eventually("the line of "+uri, func() error {
		all, err := accesses(path)
		n := 0
		for _, a := range all {
			if a.Request.URI == uri {
				found = a
				n++
			}
		}
		if err == nil && n == 0 {
			err = fmt.Errorf("the log has %+v", all)
		}
		if n > 1 {
			in.Errorf("%s has %d lines", uri, n)
		}
		return err
	})
	return found
}

const chainsThatLog = `chain notes {
	@quiet path /quiet/*
	log_skip @quiet
	log_append of {http.k8singress.service}
	log_append via {http.reverse_proxy.upstream.hostport}
	@named path /named/*
	log_name @named own
	@refused path /refused/*
	respond @refused 418
	header X-Ingress "{http.k8singress.namespace} {http.k8singress.ingress}"
	header +X-Ingress "{http.k8singress.service} {http.k8singress.port}"
	header X-Path "{http.k8singress.host} {http.k8singress.path}"
}
`

// caddyLogs starts a controller that writes its access log in Caddy's format to the returned file. The site at the
// returned address has the directive k8singress and a log.
func caddyLogs(t *testing.T) (in *ingress, path, site string) {
	t.Helper()
	ip, port := backend(t, "one")
	path, site = filepath.Join(t.TempDir(), "access.log"), fixture.Address(t)
	in = newIngress(t)
	in.write("manifests.yaml", class+service("one", port, ip)+annotated("a", "a.example", "one")+
		annotated("chained", "chained.example", "one", "k8singress.io/chains", "notes")+
		annotate(rule("odd", "odd.example", "ImplementationSpecific", "/{env.HOME}/{host}", "one"),
			"k8singress.io/chains", "notes")+
		annotated("moved", "moved.example", "one", "permanent-redirect", "https://b.example/")+
		annotated("quiet", "quiet.example", "one", "enable-access-log", "false")+
		global("skip-access-log-urls: /skipped"))
	in.loadCaddyfile(fmt.Sprintf(`{
	admin %s
	log default {
		output discard
	}
	log access {
		include http.log.access
		output file %s
		format filter {
			request>headers>X-Secret delete
			request>headers>X-Mask ip_mask 16
		}
	}
	k8singress {
		http %s
		https %s
		h2c
		manifests %s
		configmap default/global
		access_log caddy
		%s
	}
}
http://*.example:%s {
	bind 127.0.0.1
	log
	k8singress
}
`, in.admin, path, in.http, in.https, in.folder, chainsThatLog, site[strings.LastIndexByte(site, ':')+1:]))
	in.awaitReady()
	return in, path, site
}

// TestCaddyAccessLog checks that each request is logged as one line in Caddy's format, in each version of HTTP and with
// and without Caddy handlers, and that the settings of Caddy's log apply.
func TestCaddyAccessLog(t *testing.T) {
	in, path, _ := caddyLogs(t)
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		is := func(what, got, want string) {
			t.Helper()
			if !regexp.MustCompile("^(?:" + want + ")$").MatchString(got) {
				t.Errorf("%s is %q, want %s", what, got, want)
			}
		}
		tag := "/" + strings.ReplaceAll(in.version, " ", "-")
		for _, host := range []string{"quiet.example", "unknown.example"} {
			in.get(host, "/none"+tag)
		}
		in.get("a.example", "/skipped")
		if got := in.raw("GARBAGE\r\n\r\n"); len(got) != 1 || !strings.HasPrefix(got[0], "400 ") {
			t.Errorf("a request without a request line gets %q", got)
		}
		in.get("chained.example", "/quiet"+tag)
		in.sendBy(in.client, in.origin("a.example")+"/a"+tag+"?x=%22", http.MethodPost, strings.NewReader("12345"),
			"X-Secret: 1", "X-Mask: 10.1.2.3", "Cookie: session=1", "Authorization: Bearer 1")
		a := in.logged(path, "/a"+tag+"?x=%22")
		is("the line", fmt.Sprint(a.Level, " ", a.Logger, " ", a.Msg, " ", a.Status, " ", a.BytesRead, " ", a.UserID),
			"info http.log.access handled request 200 5 ")
		is("the request", a.Request.Proto+" "+a.Request.Method+" "+a.Request.Host, protocols[in.version]+
			` POST a\.example`)
		is("the fields", fmt.Sprint(a.Request.Headers["X-Secret"], a.Request.Headers["Authorization"],
			a.Request.Headers["Cookie"], a.Request.Headers["X-Mask"]), `\[\] \[REDACTED\] \[REDACTED\] \[10\.1\.0\.0\]`)
		is("the size and length", fmt.Sprint(a.Size > 0, a.RespHeaders["Content-Length"]), `true \[[0-9]+\]`)
		is("the Ingress", strings.Join([]string{a.Namespace, a.Ingress, a.Service, a.Endpoint, a.RequestID}, " "),
			`default a one 127\.0\.0\.1:[0-9]+ [0-9a-f]{32}`)
		if got := a.Request.TLS != nil && a.Request.TLS.ServerName == "a.example"; got != in.secure() {
			t.Errorf("the TLS connection is %+v", a.Request.TLS)
		}

		in.get("chained.example", "/chained"+tag)
		a = in.logged(path, "/chained"+tag)
		is("log_append", a.Of+" "+a.Via, `one 127\.0\.0\.1:[0-9]+`)
		in.get("chained.example", "/named"+tag)
		is("log_name", in.logged(path, "/named"+tag).Logger, `http\.log\.access\.own`)
		in.get("chained.example", "/refused"+tag)
		a = in.logged(path, "/refused"+tag)
		is("a refusal by Caddy", fmt.Sprint(a.Status, " ", a.Of, " ", a.Endpoint), "418 one ")
		in.get("moved.example", "/moved"+tag)
		is("a redirect", fmt.Sprint(in.logged(path, "/moved"+tag).RespHeaders["Location"]), `\[https://b\.example/\]`)
		in.get("odd.example", "/missing"+tag)
		is("a path of no Ingress", fmt.Sprint(in.logged(path, "/missing"+tag).Status), "404")

		all, err := accesses(path)
		for _, a := range all {
			if strings.Contains(a.Request.URI, "/none") || strings.Contains(a.Request.URI, "/quiet") ||
				strings.Contains(a.Request.URI, "/skipped") || a.Request.Method == "" {
				err = errors.Join(err, fmt.Errorf("there is a line of %q with the status %d", a.Request.URI, a.Status))
			}
		}
		if err != nil {
			t.Error(err)
		}
	})
}

// TestCaddyAccessLogInSites checks that a site with the directive has only its own line for a request, with the fields
// about the Ingress. An Ingress cannot remove lines from the log of a site.
func TestCaddyAccessLogInSites(t *testing.T) {
	in, path, site := caddyLogs(t)
	get := func(host, path string) {
		in.sendBy(http.DefaultClient, "http://"+site+path, http.MethodGet, nil, "Host: "+host)
	}
	get("quiet.example", "/none")
	get("a.example", "/seen")
	if a := in.logged(path, "/seen"); a.Ingress != "a" || a.Endpoint == "" || a.Service != "one" {
		t.Errorf("the line is %+v", a)
	}
	if a := in.logged(path, "/none"); a.Ingress != "quiet" {
		t.Errorf("the line is %+v", a)
	}
	if all, err := accesses(path); err != nil || len(all) != 2 {
		t.Errorf("the lines are %+v, and the error %v", all, err)
	}
}

// TestPlaceholders checks placeholders about the Ingress in chains, and that a placeholder in the path of an Ingress
// stays text.
func TestPlaceholders(t *testing.T) {
	in, _, _ := caddyLogs(t)
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		header := in.get("chained.example", "/").header
		got := strings.Join(header["X-Ingress"], " ") + " " + header.Get("X-Path")
		if got != "default chained one 80 chained.example /" {
			t.Errorf("the placeholders are %q", got)
		}
		if got := in.get("odd.example", "/%7Benv.HOME%7D/%7Bhost%7D").header.Get("X-Path"); got !=
			"odd.example /{env.HOME}/{host}" {
			t.Errorf("for a path with placeholders, X-Path is %q", got)
		}
	})
}
