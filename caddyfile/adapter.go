package caddyfile

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/k8singress/k8singress/internal/control/structure"
	"github.com/k8singress/k8singress/internal/model/settings"
	"github.com/k8singress/k8singress/internal/process/caddyinternals"
)

const adapterName = "caddyfile"

// errAdapter is the reason why Caddy's Caddyfile adapter could not be wrapped, or nil on success. If wrapping failed,
// the JSON configuration of a Caddyfile lacks the servers and TLS policies of the controller.
var errAdapter error

// Wrap Caddy's adapter: a global option can only add an app to the configuration, but the option k8singress also adds
// servers and TLS policies. See design/002-structure-from-a-global-option.md. At this point, Caddy's adapter is already
// registered, because this package imports httpcaddyfile.
func init() {
	errAdapter = caddyinternals.WrapAdapter(adapterName,
		func(next caddyconfig.Adapter) caddyconfig.Adapter { return adapter{next} })
}

// adapter wraps another Caddyfile adapter. If its output contains the app k8singress, it adds the servers and TLS
// policies of the controller.
type adapter struct {
	next caddyconfig.Adapter
}

// Adapt converts a Caddyfile to Caddy's JSON configuration. It implements caddyconfig.Adapter. If options contains a
// structure.Complete, it determines the options of the app.
func (a adapter) Adapt(body []byte, options map[string]any) ([]byte, []caddyconfig.Warning, error) {
	complete, _ := options[structure.CompleteOption].(structure.Complete)
	adapted, warnings, err := a.next.Adapt(body, options)
	if err != nil || complete == nil && !bytes.Contains(adapted, []byte(name)) {
		return adapted, warnings, err
	}
	filename, _ := options["filename"].(string)
	whole, ours, err := addStructure(adapted, globalSegments(body, cmp.Or(filename, "Caddyfile")), complete)
	if err != nil {
		return nil, warnings, err
	}
	return whole, append(warnings, ours...), nil
}

// outline contains the parts of Caddy's JSON configuration that are needed to add the servers and TLS policies of the
// controller.
type outline struct {
	Admin *caddy.AdminConfig         `json:"admin"`
	Apps  map[string]json.RawMessage `json:"apps"`
}

// addStructure adds the servers and TLS policies to an adapted Caddyfile with the given global options, if it contains
// our app or complete is not nil. It also returns warnings about global options without effect.
func addStructure(adapted []byte, global []caddyfile.Segment, complete structure.Complete) (
	[]byte, []caddyconfig.Warning, error) {
	var o outline
	if err := json.Unmarshal(adapted, &o); err != nil {
		return nil, nil, fmt.Errorf("decoding the adapted configuration: %w", err)
	}
	raw, ok := o.Apps[name]
	if !ok && complete == nil {
		return adapted, nil, nil
	}
	options, err := decodeOptions(raw, complete)
	if err != nil {
		return nil, nil, err
	}
	var config map[string]any
	if err := json.Unmarshal(adapted, &config); err != nil {
		return nil, nil, fmt.Errorf("decoding the adapted configuration: %w", err)
	}
	apps, err := structure.Child(config, "apps")
	if err != nil {
		return nil, nil, err
	}
	options, err = withIssuerDefaults(options, global)
	if err != nil {
		return nil, nil, err
	}
	options, listenWarnings, err := withListenDefaults(options, global)
	if err != nil {
		return nil, nil, err
	}
	options = withServerNames(options, global)
	options, logWarnings := withLogCredentials(options, global)
	contradictions, err := contradictingServers(options, global)
	if err != nil {
		return nil, nil, err
	}
	options.Admin = cmp.Or(adminAddress(o.Admin), options.Admin)
	apps[name] = structure.Tree(options)
	if err := addHTTPOptions(config, global); err != nil {
		return nil, nil, err
	}
	hasSites := len(structure.Branch(config, "apps", "http", "servers")) > 0
	ignored, err := addServerOptions(config, global, options)
	if err != nil {
		return nil, nil, err
	}
	ignored = append(ignored, chainLogWarnings(config, options, global)...)
	if err := structure.Merge(config, options); err != nil {
		return nil, nil, fmt.Errorf("adding the servers of %s: %w", name, err)
	}
	if _, err := structure.Uses(config); err != nil {
		return nil, nil, err
	}
	whole, err := json.Marshal(config)
	return whole, slices.Concat(warnings(global, hasSites, options), listenWarnings, logWarnings, contradictions,
		ignored), err
}

// decodeOptions decodes the options of the app, and passes them to complete. If complete is nil, it returns an error if
// an option needs another one. raw may be empty.
func decodeOptions(raw json.RawMessage, complete structure.Complete) (options settings.Config, err error) {
	if len(raw) > 0 {
		err = json.Unmarshal(raw, &options)
	}
	if err != nil {
		return options, fmt.Errorf("decoding the options of %s: %w", name, err)
	}
	if complete != nil {
		return complete(options, len(raw) > 0)
	}
	if err := options.Check(); err != nil {
		return options, fmt.Errorf("the options of %s: %w", name, err)
	}
	return options, nil
}

// adminAddress returns the address of the admin API in the Caddyfile. It returns "" if the Caddyfile does not set the
// address, because the default depends on the machine on which Caddy will run.
func adminAddress(admin *caddy.AdminConfig) string {
	switch {
	case admin == nil:
		return ""
	case admin.Disabled:
		return settings.AdminOff
	}
	return admin.Listen
}
