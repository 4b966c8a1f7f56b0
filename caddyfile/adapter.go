package caddyfile

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"

	"github.com/k8singress/k8singress/internal/control/structure"
	"github.com/k8singress/k8singress/internal/model/settings"
	"github.com/k8singress/k8singress/internal/process/caddyinternals"
)

const adapterName = "caddyfile"

// errAdapter is the reason why the adapter could not be wrapped. The output for a Caddyfile then lacks the structure.
// It is nil on success.
var errAdapter error

// A global option can only add one app to a configuration, but this option also adds servers and TLS policies, so the
// output of Caddy's adapter has to be edited. See design/002-structure-from-a-global-option.md. The import of
// httpcaddyfile registers Caddy's adapter before this runs.
func init() {
	errAdapter = caddyinternals.WrapAdapter(adapterName,
		func(next caddyconfig.Adapter) caddyconfig.Adapter { return adapter{next} })
}

// adapter adds the structure to the output of another adapter, if that contains our app.
type adapter struct {
	next caddyconfig.Adapter
}

// Adapt converts a Caddyfile to Caddy's JSON.
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

// outline holds the parts of a configuration that the structure depends on.
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

// adminAddress returns the address of the admin API in the Caddyfile. It is empty if the Caddyfile does not set it,
// because the default may be different where the configuration runs.
func adminAddress(admin *caddy.AdminConfig) string {
	switch {
	case admin == nil:
		return ""
	case admin.Disabled:
		return settings.AdminOff
	}
	return admin.Listen
}
