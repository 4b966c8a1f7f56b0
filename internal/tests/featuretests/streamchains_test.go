package featuretests

import (
	"testing"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// closing returns a stream chain named "web" that closes connections with requests for a path.
func closing(path string) string {
	return "stream_chain web {\n@path regexp \"^GET " + path + "\" 9\nroute @path {\nclose\n}\n}"
}

// TestStreamChain checks that the connections of a Service's port pass through its chain, that caddy reload changes the
// chain for new connections only, and that the port is closed if the chain is removed.
func TestStreamChain(t *testing.T) {
	ip, backendPort := backend(t, "one")
	port := fixture.Port(t)
	in := start(t, class+exposed("one", backendPort, ip, "tcp-ports: "+port+":80", "stream-chains: web"), servicePorts,
		closing("/else"))
	open := in.hold(port)
	if body, err := askOnce(in.accepted("127.0.0.1:"+port), "/else"); err == nil {
		t.Errorf("a connection that the chain refuses gets %q", body)
	}

	options := "manifests " + in.folder + "\n" + servicePorts + "\n"
	in.load(options + closing("/held"))
	in.eventually("the new chain", func() error {
		body, err := askOnce(in.accepted("127.0.0.1:"+port), "/else")
		if err == nil && body != "one /else" {
			t.Errorf("the backend answers %q", body)
		}
		return err
	})
	if body, err := askOnce(in.accepted("127.0.0.1:"+port), "/held"); err == nil {
		t.Errorf("a connection that the new chain refuses gets %q", body)
	}
	open.ask("one /held")

	in.load(options)
	in.closes(port)
	open.ask("one /held")
	in.awaitVerdict("Service/default/one", "InvalidAnnotation", `there is no stream_chain "web"`)
}
