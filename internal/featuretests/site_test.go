package featuretests

import (
	"encoding/json"
	"fmt"
	"maps"
	"net"

	"github.com/caddyserver/caddy/v2/caddyconfig"

	"github.com/k8singress/k8singress/internal/fixture"
)

// behindASite runs the controller behind a server of the administrator's own, whose limits may be others than ours, and
// returns where that one listens. It speaks no TLS.
func (in *ingress) behindASite(limits map[string]any) (address string) {
	in.Helper()
	address = fixture.Address(in)
	_, port, _ := net.SplitHostPort(address)
	text := fmt.Sprintf("{\nadmin %s\nauto_https off\nk8singress {\nhttp %s\nhttps off\nmanifests %s\n}\n}\n"+
		"http://:%s {\nbind 127.0.0.1\nk8singress\n}\n", in.admin, in.http, in.folder, port)
	config, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(onThisMachine(text)), map[string]any{"filename": "Caddyfile"})
	if err != nil {
		in.Fatal(err)
	}
	var tree map[string]any
	if err := json.Unmarshal(config, &tree); err != nil {
		in.Fatal(err)
	}
	servers := tree["apps"].(map[string]any)["http"].(map[string]any)["servers"].(map[string]any)
	maps.Copy(servers["srv0"].(map[string]any), limits)
	if config, err = json.Marshal(tree); err != nil {
		in.Fatal(err)
	}
	in.reload(config)
	in.awaitReady()
	return address
}
