package caddyfile

import (
	"bytes"
	"encoding/json"
	"fmt"
	_ "unsafe" // for go:linkname

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"

	"github.com/k8singress/k8singress/internal/settings"
	"github.com/k8singress/k8singress/internal/structure"
)

// configAdapters is Caddy's own list of adapters. A global option can add one app to a configuration, and this one
// stands for servers and TLS policies as well; Caddy has no other place where a plugin could add those.
// See design/002-structure-from-a-global-option.md.
//
//go:linkname configAdapters github.com/caddyserver/caddy/v2/caddyconfig.configAdapters
var configAdapters map[string]caddyconfig.Adapter

const adapterName = "caddyfile"

// The import of httpcaddyfile puts Caddy's adapter there before this runs.
func init() {
	next := configAdapters[adapterName]
	if next == nil {
		panic("k8singress does not fit this version of Caddy: its list of configuration adapters is not where it was")
	}
	configAdapters[adapterName] = adapter{next}
}

// adapter adds the structure to what another adapter makes, where that has our app.
type adapter struct {
	next caddyconfig.Adapter
}

// Adapt turns a Caddyfile into Caddy's JSON.
func (a adapter) Adapt(body []byte, options map[string]any) ([]byte, []caddyconfig.Warning, error) {
	adapted, warnings, err := a.next.Adapt(body, options)
	if err != nil || !bytes.Contains(adapted, []byte(name)) {
		return adapted, warnings, err
	}
	complete, err := addStructure(adapted)
	if err != nil {
		return nil, warnings, err
	}
	return complete, warnings, nil
}

// outline is of a configuration what decides about the structure.
type outline struct {
	Admin *caddy.AdminConfig         `json:"admin"`
	Apps  map[string]json.RawMessage `json:"apps"`
}

func addStructure(adapted []byte) ([]byte, error) {
	var o outline
	if err := json.Unmarshal(adapted, &o); err != nil {
		return nil, fmt.Errorf("decoding the adapted configuration: %w", err)
	}
	raw, ok := o.Apps[name]
	if !ok {
		return adapted, nil
	}
	var options settings.Config
	if err := json.Unmarshal(raw, &options); err != nil {
		return nil, fmt.Errorf("decoding the options of %s: %w", name, err)
	}
	var config map[string]any
	if err := json.Unmarshal(adapted, &config); err != nil {
		return nil, fmt.Errorf("decoding the adapted configuration: %w", err)
	}
	if address := adminAddress(o.Admin); address != "" {
		config["apps"].(map[string]any)[name].(map[string]any)["admin"] = address
	}
	if err := structure.Merge(config, options); err != nil {
		return nil, fmt.Errorf("adding the servers of %s: %w", name, err)
	}
	return json.Marshal(config)
}

// adminAddress is empty where the Caddyfile leaves it to Caddy.
func adminAddress(admin *caddy.AdminConfig) string {
	switch {
	case admin == nil:
		return ""
	case admin.Disabled:
		return settings.AdminOff
	case admin.Listen == caddy.DefaultAdminListen:
		return ""
	}
	return admin.Listen
}
