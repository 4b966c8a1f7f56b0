package snippets_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/translate/snippets"
)

// httpWithZones defines the zones of the tests. The line breaks show that a limit may precede its zone.
const httpWithZones = `limit_req zone=all burst=3;
	map $http_x_tenant $tenant { default $http_x_tenant; }
	limit_req_zone $Binary_Remote_Addr zone=all:10m rate=2r/s;
	limit_req_zone $Tenant zone=tenant:32k rate=90r/m;
	limit_conn_zone $host zone=host:1m;`

// The JSON of the zones.
const (
	zoneAll    = `{"name":"all","requests_per_second":2,"max_clients":163840}`
	zoneTenant = `{"name":"tenant","key":"$tenant","requests_per_minute":90,"max_clients":512}`
	zoneHost   = `{"name":"host","key":"$host"}`
)

func jsonOf(t *testing.T, limits *ir.ZoneLimits) string {
	t.Helper()
	raw, err := json.Marshal(limits)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// TestLimits checks the limits of a location, without the limits that it inherits.
func TestLimits(t *testing.T) {
	h := snippets.ReadHTTP(httpWithZones)
	if f := h.Closed(); f != nil {
		t.Fatal(f)
	}
	want := `{"requests":[{"zone":` + zoneAll + `,"burst":3}]}`
	if got := jsonOf(t, h.Server("", "").Limits); got != want {
		t.Errorf("all servers inherit %s\nwant %s", got, want)
	}
	const tenant = `{"requests":[{"zone":` + zoneTenant
	for text, want := range map[string]string{
		"limit_req zone=tenant;":                        tenant + `}]}`,
		"limit_req burst=5 nodelay zone=tenant;":        tenant + `,"burst":5,"undelayed":5}]}`,
		"limit_req zone=tenant burst=5 delay=2;":        tenant + `,"burst":5,"undelayed":2}]}`,
		"limit_req zone=tenant nodelay;":                tenant + `}]}`,
		"limit_req zone=tenant; limit_req zone=all;":    tenant + `},{"zone":` + zoneAll + `}]}`,
		"limit_req_status 429; limit_req_dry_run on;":   `{"status_code":429,"dry_run":true}`,
		"limit_req_dry_run off; limit_conn_dry_run on;": `{"dry_run":false,"connections_dry_run":true}`,
		"limit_conn host 7; limit_conn_status 429;": `{"connections":[{"zone":` + zoneHost +
			`,"max":7}],"connections_status_code":429}`,
		"add_header A b;": "null",
	} {
		r := h.Location(text, "")
		if f := r.Closed(false); f != nil {
			t.Errorf("%s: %s", text, f)
		}
		if got := jsonOf(t, r.Limits); got != want {
			t.Errorf("%s\nhas the limits %s\nwant %s", text, got, want)
		}
	}
}

// TestInheritedLimits checks what servers and their locations inherit: each kind of limit as a whole, and the statuses.
func TestInheritedLimits(t *testing.T) {
	h := snippets.ReadHTTP(httpWithZones)
	all, tenant := `{"zone":`+zoneAll+`,"burst":3}`, `{"zone":`+zoneTenant+`}`
	host := `"connections":[{"zone":` + zoneHost + `,"max":7}]`
	s := h.Server("limit_conn host 7; limit_req_status 429; location /a { limit_req zone=tenant; "+
		"limit_req_status 420; } location /b { location /b/c { limit_conn host 1; } }", "")
	if f := s.Closed(false); f != nil {
		t.Fatal(f)
	}
	got := []string{jsonOf(t, s.Limits)}
	for i := range s.Locations {
		got = append(got, jsonOf(t, s.Locations[i].Content.Limits))
	}
	for i, want := range []string{
		`{"requests":[` + all + `],` + host + `,"status_code":429}`,
		`{"requests":[` + tenant + `],` + host + `,"status_code":420}`,
		`{"requests":[` + all + `],` + host + `,"status_code":429}`,
		`{"requests":[` + all + `],` + strings.Replace(host, "7", "1", 1) + `,"status_code":429}`,
	} {
		if got[i] != want {
			t.Errorf("%d has the limits %s\nwant %s", i, got[i], want)
		}
	}
	if s := snippets.Server("location / { }", ""); s.Limits != nil {
		t.Error("a server without limits has some")
	}
}

// TestInvalidLimits checks the texts that nginx would refuse. Such a text closes its Ingresses.
func TestInvalidLimits(t *testing.T) {
	h := snippets.ReadHTTP(httpWithZones)
	for text, want := range map[string]string{
		"limit_req zone=other;": `there is no zone "other": define it with limit_req_zone in the ConfigMap key ` +
			"http-snippet, or use one of its zones: all, tenant",
		"limit_req zone=host;": `no zone "host": define it with limit_req_zone`,
		"limit_conn all 1;": "" +
			"with limit_conn_zone in the ConfigMap key http-snippet, or use one of its zones: h",
		"limit_req burst=1;":                         "write zone=NAME",
		"limit_req zone=all burst=0;":                `"0" is not a number from 1`,
		"limit_req zone=all delay=-1;":               `"-1" is not a number`,
		"limit_req zone=all later;":                  `and not "later"`,
		"limit_req zone=all; limit_req zone=all":     `the zone "all" is used twice`,
		"limit_conn host 0;":                         "from 1 to 65535",
		"limit_conn host 65536;":                     "from 1 to 65535",
		"limit_conn host 1; limit_conn host 2":       `the zone "host" is used twice`,
		"limit_req_status 200;":                      "from 400 to 599",
		"limit_conn_status 600;":                     "from 400 to 599",
		"limit_req_status 429; limit_req_status 429": "line 1 already contains it",
	} {
		f := h.Location(strings.TrimSuffix(text, ";")+";", "").Closed(false)
		if f == nil || f.Class != snippets.Unreadable || !strings.Contains(f.Text, want) {
			t.Errorf("%s: the finding is %+v, want %q", text, f, want)
		}
	}
	if f := snippets.Location("limit_req zone=a;", "").Closed(false); f == nil || strings.Contains(f.Text, "one of") {
		t.Errorf("without http-snippet, the finding is %v", f)
	}
}

// TestInvalidZones checks the texts for all hosts that nginx would refuse.
func TestInvalidZones(t *testing.T) {
	for text, want := range map[string]string{
		"limit_req_zone $host zone=a:1m rate=0r/s;":                 `"0r/s" is not a number of requests`,
		"limit_req_zone $host zone=a:1m rate=r/s;":                  `"r/s" is not a number of requests`,
		"limit_req_zone $host zone=a:1m rate=1.5r/s;":               "is not a number of requests",
		"limit_req_zone $host zone=a:1k rate=1r/s;":                 "the size 1k is too small",
		"limit_req_zone $host zone=a rate=1r/s;":                    "write zone=NAME:SIZE",
		"limit_req_zone $host zone=:1m rate=1r/s;":                  "it needs a zone",
		"limit_req_zone $host rate=1r/s rate=1r/s;":                 "it needs a zone",
		"limit_req_zone $host zone=a:1m burst=5;":                   `and not "burst=5"`,
		"limit_req_zone $nosuch zone=a:1m rate=1r/s;":               "the key: there is no variable $nosuch",
		"limit_req_zone $status zone=a:1m rate=1r/s;":               "the key: ",
		"map $status $b { } limit_req_zone $b zone=a:1m rate=1r/s;": "derived from the response",
		"limit_conn_zone $host name=a:1m;":                          "it needs a zone",
		"limit_conn_zone $host zone=a:1;":                           "too small",
		"limit_conn_zone $host zone=a:1m; limit_conn_zone $uri zone=a:1m;": "" +
			`already a zone "a"`,
		"limit_conn_zone $uri zone=a:1m; limit_req_zone $uri zone=a:1m rate=1r/s;": "" +
			`already a zone "a"`,
		"limit_req zone=a;": `"limit_req" is not valid: there is no zone "a"`,
		"limit_conn_zone $host zone=a:1m; limit_conn b 1;": "or use one of its zones: a",
	} {
		h := snippets.ReadHTTP(text)
		f := h.Closed()
		if f == nil || f.Class != snippets.Unreadable || !strings.Contains(f.Text, want) {
			t.Errorf("%s: the finding is %+v, want %q", text, f, want)
		}
		if h.HasZones() || h.ReachesPaths() {
			t.Errorf("%s: an unreadable text has limits", text)
		}
	}
	h := snippets.ReadHTTP("limit_req_status 429;")
	if f := h.Findings[0]; f.Class != snippets.LeftOut || !strings.Contains(f.Text, "limit-req-status-code") ||
		h.ReachesPaths() {
		t.Errorf("the finding is %+v", f)
	}
}
