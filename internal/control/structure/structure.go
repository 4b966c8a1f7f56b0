// Package structure renders the static part of the Caddy configuration, which changes only with the options: the HTTP
// servers, the TLS policies, and the Caddy settings that the controller requires.
package structure

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddytls"

	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/settings"
)

// Default names of our HTTP servers in apps.http.servers.
const (
	HTTPServer   = "k8singress_http"
	HTTPSServer  = "k8singress_https"
	HealthServer = "k8singress_health"
)

// CompleteOption is the key of a Complete in the options that are passed to the Caddyfile adapter. Caddy adds the
// values of global options to the same map, so the key is not a valid name of an option.
const CompleteOption = "k8singress {complete}"

// Complete returns the options of the app for the options in a Caddyfile. The adapter calls it before it adds the
// structure, also if the Caddyfile lacks the app, in which case configured is false. Without a Complete, the adapter
// rejects options that need another option. With it, the command line may set the other option.
type Complete func(c settings.Config, configured bool) (settings.Config, error)

// ours lists the names of our HTTP servers, in the order in which they are added to the configuration.
var ours = []string{HTTPServer, HTTPSServer, HealthServer}

// HasDefaultHead reports whether a server has the default limit of our servers for request headers, in bytes. Any other
// limit, and the limit of a server of the administrator, is a setting of the administrator.
func HasDefaultHead(server string, limit int) bool {
	return slices.Contains(ours, server) && limit == maxHeaderBytes
}

const (
	// maxHeaderBytes is the maximum size of request headers in bytes. It is ingress-nginx's default: four buffers of 8
	// KiB.
	maxHeaderBytes = 32 << 10
	// certificates is the minimum capacity of Caddy's certificate cache, in certificates. A full cache drops random
	// certificates.
	certificates = 20_000
)

// Timeouts of the servers, with the defaults of ingress-nginx.
const (
	// headerTimeout is client-header-timeout: the maximum time to receive the headers of a request.
	headerTimeout = caddy.Duration(time.Minute)
	// bodyTimeout is client-body-timeout and send-timeout: the maximum time without progress while a request body is
	// received or a response is sent.
	bodyTimeout = caddy.Duration(time.Minute)
	// keepAlive is keep-alive: the maximum idle time of a connection between requests.
	keepAlive = caddy.Duration(75 * time.Second)
)

// probeTimeout is the maximum time to receive the headers of a probe.
const probeTimeout = caddy.Duration(10 * time.Second)

// handshakeTimeout is the maximum duration of a TLS handshake. Without it, Go would use the timeout for request
// headers.
const handshakeTimeout = caddy.Duration(10 * time.Second)

// Structure returns the servers and settings that the options require, in the form into which encoding/json decodes a
// Caddy configuration. Options that are not set have their default values.
func Structure(c settings.Config) map[string]any {
	config := withOwnNames(c)
	useNames(config, c)
	return config
}

// withOwnNames returns what Structure returns, but with the default names of our servers.
func withOwnNames(c settings.Config) map[string]any {
	persist := false
	apps := map[string]any{
		"http":       httpApp(c.WithDefaults()),
		"tls":        tlsApp(c),
		"k8singress": c.WithoutDefaults(),
	}
	if usesLocalCA(c) {
		apps["pki"] = pkiApp()
	}
	return Tree(map[string]any{
		"admin": &caddy.AdminConfig{Config: &caddy.ConfigSettings{Persist: &persist}}, "apps": apps,
	})
}

func httpApp(c settings.Config) *caddyhttp.App {
	return &caddyhttp.App{
		Servers: servers(c), ShutdownDelay: caddy.Duration(c.ShutdownDelay),
		GracePeriod: caddy.Duration(c.ShutdownTimeout),
	}
}

func servers(c settings.Config) map[string]*caddyhttp.Server {
	all := map[string]*caddyhttp.Server{}
	if len(c.HTTP) > 0 {
		all[HTTPServer] = server(c.HTTP)
		// Caddy logs a warning for each protocol that needs TLS.
		all[HTTPServer].Protocols = []string{"h1"}
		all[HTTPServer].ListenerWrappersRaw = []json.RawMessage{wrapper(c)}
	}
	if len(c.HTTPS) > 0 {
		all[HTTPSServer] = server(c.HTTPS)
		if c.HTTP3 == settings.HTTP3Off {
			all[HTTPSServer].Protocols = []string{"h1", "h2"}
		}
		all[HTTPSServer].TLSConnPolicies, all[HTTPSServer].StrictSNIHost = connectionPolicies(), new(bool)
		all[HTTPSServer].ListenerWrappersRaw = []json.RawMessage{
			document.Encode(map[string]any{"wrapper": "k8singress", "handshake_timeout": handshakeTimeout}),
			json.RawMessage(`{"wrapper":"tls"}`),
		}
	}
	if c.Health != "" {
		all[HealthServer] = healthServer(c)
	}
	return all
}

// wrapper returns the listener wrapper of the HTTP server. h2c is enabled in the wrapper and not in the server's list
// of protocols, because the administrator may change this list.
func wrapper(c settings.Config) json.RawMessage {
	options := map[string]any{"wrapper": "k8singress"}
	if c.H2C {
		options["h2c"] = true
	}
	return document.Encode(options)
}

// server returns an HTTP server without automatic HTTPS, because the hosts of Ingresses are in our routing table and
// not in the server's routes.
func server(listen []string) *caddyhttp.Server {
	return &caddyhttp.Server{
		Listen:            listen,
		MaxHeaderBytes:    maxHeaderBytes,
		ReadHeaderTimeout: headerTimeout,
		ReadIdleTimeout:   bodyTimeout,
		WriteIdleTimeout:  bodyTimeout,
		IdleTimeout:       keepAlive,
		AutoHTTPS:         &caddyhttp.AutoHTTPSConfig{Disabled: true},
		Routes:            only("k8singress"),
	}
}

// healthServer returns the server for health probes. It supports only HTTP/1.1 and has no access log.
func healthServer(c settings.Config) *caddyhttp.Server {
	return &caddyhttp.Server{
		Listen:              []string{c.Health},
		ReadHeaderTimeout:   probeTimeout,
		Protocols:           []string{"h1"},
		AutoHTTPS:           &caddyhttp.AutoHTTPSConfig{Disabled: true},
		Routes:              healthRoutes(c),
		ListenerWrappersRaw: []json.RawMessage{json.RawMessage(`{"wrapper":"k8singress_probes"}`)},
	}
}

func healthRoutes(c settings.Config) caddyhttp.RouteList {
	probes := map[string]any{"handler": "k8singress_health"}
	if c.HealthPath != "" {
		probes["path"] = c.HealthPath
	}
	if c.HealthReady {
		probes["ready"] = true
	}
	if c.HealthMetrics {
		probes["metrics"] = true
	}
	routes := caddyhttp.RouteList{{HandlersRaw: []json.RawMessage{document.Encode(probes)}}}
	if !c.HealthMetrics {
		return routes
	}
	return slices.Insert(routes, 0, caddyhttp.Route{
		MatcherSetsRaw: caddyhttp.RawMatcherSets{{"path": json.RawMessage(`["/metrics"]`)}},
		HandlersRaw:    []json.RawMessage{json.RawMessage(`{"handler":"k8singress_metrics"}`)},
	})
}

// The result of only is a list of routes that pass every request to one handler.
func only(handler string) caddyhttp.RouteList {
	return caddyhttp.RouteList{{HandlersRaw: []json.RawMessage{document.Encode(map[string]string{"handler": handler})}}}
}

// tlsApp returns a TLS app with one catch-all policy. The certificate manager of the policy returns a certificate from
// our certificate store for every name, so Caddy never contacts an issuer during a handshake. The issuers of the policy
// answer ACME challenges, including challenges that another replica has started.
//
// See onDemand for the permission module. Without a permission module, Caddy warns that certificates on demand can only
// come from the certificate manager.
func tlsApp(c settings.Config) *caddytls.TLS {
	return &caddytls.TLS{
		Automation: &caddytls.AutomationConfig{Policies: []*caddytls.AutomationPolicy{{
			ManagersRaw: []json.RawMessage{json.RawMessage(`{"via":"k8singress"}`)},
			IssuersRaw:  Issuers(c),
		}}, OnDemand: onDemand(c)},
		Cache: &caddytls.CertCacheOptions{Capacity: certificates},
	}
}

// onDemand returns the settings for certificates on demand. They contain the permission module in the options. If the
// options have no permission module, they contain our module, which denies all certificates.
func onDemand(c settings.Config) *caddytls.OnDemandConfig {
	if c.OnDemand != nil {
		return &caddytls.OnDemandConfig{PermissionRaw: c.OnDemand}
	}
	return &caddytls.OnDemandConfig{PermissionRaw: json.RawMessage(`{"module":"k8singress"}`)}
}

// Issuers returns the issuer modules for hosts of Ingresses, in the order in which they are tried. It returns nil if
// the options configure no issuers, so that Caddy uses its default issuers.
func Issuers(c settings.Config) []json.RawMessage {
	switch {
	case len(c.Issuers) > 0:
		return c.Issuers
	case c.Email == "" && c.ACMECA == "":
		return nil
	}
	return []json.RawMessage{document.EncodeModule("module", "acme",
		&caddytls.ACMEIssuer{Email: c.Email, CA: c.ACMECA})}
}

// Tree converts Caddy's structs to the form into which encoding/json decodes them, so that the result can be compared
// and merged.
func Tree(v any) map[string]any {
	var result map[string]any
	if err := json.Unmarshal(document.Encode(v), &result); err != nil {
		panic(err)
	}
	return result
}
