package structure_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/k8singress/k8singress/internal/control/structure"
)

// usesOf returns the Services that the apps of a configuration use, as lines of text.
func usesOf(t *testing.T, apps string) (lines []string, err error) {
	t.Helper()
	var config map[string]any
	if err := json.Unmarshal([]byte(`{"apps":`+apps+`}`), &config); err != nil {
		t.Fatal(err)
	}
	all, err := structure.Uses(config)
	for _, u := range all {
		lines = append(lines, u.String()+" by "+strings.Join(append([]string{u.By}, u.Match...), "; "))
	}
	return lines, err
}

// TestUses checks that modules with a Service are found wherever a configuration can contain them.
func TestUses(t *testing.T) {
	const (
		handler  = `{"handler":"k8singress","service":"a/db:pg"}`
		upstream = `{"handler":"reverse_proxy","dynamic_upstreams":`
	)
	for name, c := range map[string]struct {
		apps string
		want []string
	}{
		"no apps":    {`{}`, nil},
		"no servers": {`{"layer4":{}}`, nil},
		"other types": {
			`{"layer4":{"servers":{"s":7}},"http":{"servers":[]},"k8singress":{"chains":"a","stream_chains":null}}`,
			nil,
		},
		"our own server": {
			`{"http":{"servers":{"k8singress_http":{"routes":[{"handle":[{"handler":"k8singress"}]}]}}}}`, nil,
		},
		"another module": {`{"layer4":{"servers":{"s":{"routes":[{"handle":[{"handler":"proxy","service":"a/b"}]}]}}}}`,
			nil},
		"layer4": {`{"layer4":{"servers":{"s":{"listen":[":1",":2"],"routes":[{"handle":[` + handler + `]}]}}}}`,
			[]string{"a/db:pg by layer4 server s, which listens on :1"}},
		"layer4, in a subroute, twice": {
			`{"layer4":{"servers":{"s":{"routes":[{"handle":[{"handler":"subroute","routes":[{"handle":[` + handler +
				`]}]}]},{"handle":[` + handler + `,{"handler":"k8singress","service":"a/b"}]}]}}}}`,
			[]string{"a/b by layer4 server s", "a/db:pg by layer4 server s"},
		},
		"behind matchers of layer4": {
			`{"layer4":{"servers":{"s":{"routes":[{"match":[{"tls":{"sni":["a"]},"ssh":{}},{"postgres":null}],` +
				`"handle":[{"handler":"tls"},{"handler":"subroute","routes":[` +
				`{"match":[{"not":[{"http":[]}]}],"handle":[` + handler +
				`]},{"handle":[` + handler + `]}]}]},{"match":[],"handle":[` + handler + `]}]}}}}`,
			[]string{
				`a/db:pg by layer4 server s`,
				`a/db:pg by layer4 server s; ssh and tls {"sni":["a"]}, or postgres`,
				`a/db:pg by layer4 server s; ssh and tls {"sni":["a"]}, or postgres; not [{"http":[]}]`,
			},
		},
		"behind matchers of a stream chain": {
			`{"k8singress":{"stream_chains":{"c":{"routes":[{"match":[{"ssh":{}}],"handle":[` + handler + `]}]}}}}`,
			[]string{"a/db:pg by the stream chain c; ssh"},
		},
		"behind matchers of layer4 and HTTP": {
			`{"http":{"servers":{"s":{"listener_wrappers":[{"wrapper":"layer4","routes":[` +
				`{"match":[{"ssh":{}}],"handle":[` + handler +
				`]}]}],"routes":[{"match":[{"path":["/a"]}],"handle":[` + upstream +
				`{"source":"k8singress","service":"a/c"}}]}]}}}}`,
			[]string{"a/c by server s", "a/db:pg by server s; ssh"},
		},
		"a listener wrapper": {
			`{"http":{"servers":{"s":{"listen":[":80"],"listener_wrappers":[{"wrapper":"layer4","routes":[{"handle":[` +
				handler + `]}]}]}}}}`, []string{"a/db:pg by server s, which listens on :80"},
		},
		"a site": {
			`{"http":{"servers":{"s":{"routes":[{"match":[{"host":["b.example","a.example"]}],"handle":[` + upstream +
				`{"source":"multi","sources":[{"source":"k8singress","service":"a/web:80"},{"source":"srv"}]}}]}]}}}}`,
			[]string{"a/web:80 by the site a.example, b.example"},
		},
		"chains": {
			`{"k8singress":{"chains":{"c":[{"handle":[` + upstream + `{"source":"k8singress","service":"a/web"}}]}]},` +
				`"stream_chains":{"s":{"routes":[{"handle":[` + handler + `]}]}}}}`,
			[]string{"a/web by the chain c", "a/db:pg by the stream chain s"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := usesOf(t, c.apps)
			if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
				t.Errorf("error %v, -want +got:\n%s", err, diff)
			}
		})
	}
	_, err := usesOf(t,
		`{"layer4":{"servers":{"s":{"routes":[{"handle":[{"handler":"k8singress","service":"db"}]}]}}}}`)
	if err == nil || !strings.HasPrefix(err.Error(), "layer4 server s: the service ") {
		t.Errorf("an invalid name: %v", err)
	}
}

// TestUsesOfDatagrams checks that a server without a TCP address, whose handler would get no connection, is an error.
func TestUsesOfDatagrams(t *testing.T) {
	for listen, fails := range map[string]bool{
		`"udp/:53"`: true, `"udp/:53","udp6/:54"`: true, `":53","udp/:53"`: false, `"udp/:53",":53"`: false,
		`"{env.ADDRESS}"`: false, `"unix//a"`: false, ``: false,
	} {
		server := `{"layer4":{"servers":{"s":{"listen":[` + listen + `],"routes":[{"handle":[{"handler":%s}]}]}}}}`
		_, err := usesOf(t, fmt.Sprintf(server, `"k8singress","service":"a/dns"`))
		if _, other := usesOf(t, fmt.Sprintf(server, `"proxy"`)); (err != nil) != fails || other != nil {
			t.Errorf("%s: %v, and without our handler %v", listen, err, other)
		}
	}
}

// TestFollowed checks that each port is followed once, also if several servers use it.
func TestFollowed(t *testing.T) {
	var config map[string]any
	const server = `{"routes":[{"handle":[{"handler":"k8singress","service":"b/web"},` +
		`{"handler":"k8singress","service":"a/web"}]}]}`
	if err := json.Unmarshal([]byte(`{"apps":{"layer4":{"servers":{"s":`+server+`,"t":`+server+`}}}}`),
		&config); err != nil {
		t.Fatal(err)
	}
	all, err := structure.Uses(config)
	ports := structure.Followed(all)
	if err != nil || len(all) != 4 || len(ports) != 2 || ports[0].String() != "a/web" || ports[1].String() != "b/web" {
		t.Errorf("%v: %v", ports, err)
	}
}
