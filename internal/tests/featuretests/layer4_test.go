package featuretests

import (
	"fmt"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// layer4 returns the Caddyfile of an administrator whose layer4 app forwards connections on a port: requests for /gone
// to a Service that does not exist, and all others to the Service "default/one". options are options of the handler.
func (in *ingress) layer4(port, options string) string {
	return fmt.Sprintf("{\nadmin %s\nauto_https off\nk8singress {\nhttp off\nhttps off\nmanifests %s\n}\n"+
		"layer4 {\n127.0.0.1:%s {\n@gone regexp \"^GET /gone\" 9\n"+
		"route @gone {\nk8singress  {\nservice default/gone:80\n}\n}\n"+
		"route {\nk8singress  {\nservice default/one:http\n%s}\n}\n}\n}\n}\n", in.admin, in.folder, port, options)
}

// TestLayer4Handler checks that a matcher and the handler of the administrator's layer4 app forward connections to the
// endpoints of a Service to which no Kubernetes object refers, and that open connections outlive a reload, and count
// for the limit of the new configuration.
func TestLayer4Handler(t *testing.T) {
	in := newIngress(t)
	oneIP, onePort := backend(t, "one")
	twoIP, twoPort := backend(t, "two")
	in.write("one.yaml", service("one", onePort, oneIP))
	port := fixture.Port(t)
	in.loadCaddyfile(in.layer4(port, ""))
	in.leadsTo(port, "one /tcp")
	open := in.hold(port)
	if body, err := askOnce(in.accepted("127.0.0.1:"+port), "/gone"); err == nil {
		t.Errorf("a connection for a Service that does not exist gets %q", body)
	}
	in.awaitVerdict("Service/default/gone", "ServiceNotFound", "the Service default/gone does not exist")

	in.write("one.yaml", service("one", twoPort, twoIP))
	in.leadsTo(port, "two /tcp")
	in.loadCaddyfile(in.layer4(port, "max_connections 1\n"))
	in.closes(port)
	open.ask("one /held")
	_ = open.Close()
	in.leadsTo(port, "two /tcp")
	in.write("one.yaml", strings.Replace(service("one", twoPort, twoIP), "- addresses: ["+twoIP+"]",
		"- addresses: ["+twoIP+"]\n  conditions: {ready: false}", 1))
	in.closes(port)
}
