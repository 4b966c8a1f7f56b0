package featuretests

import (
	"encoding/json"
	"fmt"
	"maps"
	"net"

	"github.com/caddyserver/caddy/v2/caddyconfig"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// behindASite runs the controller behind a separate Caddy server of the administrator with other limits, and returns
// the server's address. The server does not use TLS.
func (in *ingress) behindASite(limits map[string]any) (address string) {
	in.Helper()
	address = fixture.Address(in)
	_, port, _ := net.SplitHostPort(address)
	text := fmt.Sprintf("{\nadmin %s\nauto_https off\nk8singress {\nhttp %s\nhttps off\nmanifests %s\n}\n}\n"+
		"http://:%s {\nbind 127.0.0.1\nk8singress\n}\n", in.admin, in.http, in.folder, port)
	config, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(onThisMachine(text)),
		map[string]any{"filename": "Caddyfile"})
	if err != nil {
		in.Fatal(err)
	}
	in.reload(in.withServers(config,
		func(servers map[string]any) { maps.Copy(servers["srv0"].(map[string]any), limits) }))
	in.awaitReady()
	return address
}

// withServers returns a Caddy configuration after change was applied to its HTTP servers.
func (in *ingress) withServers(config []byte, change func(servers map[string]any)) []byte {
	in.Helper()
	var tree map[string]any
	if err := json.Unmarshal(config, &tree); err != nil {
		in.Fatal(err)
	}
	if app, ok := tree["apps"].(map[string]any)["http"].(map[string]any); ok {
		change(app["servers"].(map[string]any))
	}
	config, err := json.Marshal(tree)
	if err != nil {
		in.Fatal(err)
	}
	return config
}

// withOwnServers also serves the Ingresses of the folder with servers of the administrator. They are copies of our
// servers with changes, since our own cannot be changed. The clients of the test use them.
func (in *ingress) withOwnServers(options string, change func(server map[string]any)) {
	in.Helper()
	own := map[string]string{"k8singress_http": fixture.Address(in), "k8singress_https": fixture.Address(in)}
	in.reload(in.withServers(in.adapted(options), func(servers map[string]any) {
		for name, address := range own {
			server := maps.Clone(servers[name].(map[string]any))
			server["listen"] = []string{address}
			change(server)
			servers[name+"_own"] = server
		}
	}))
	in.awaitReady()
	in.http, in.https = own["k8singress_http"], own["k8singress_https"]
}
