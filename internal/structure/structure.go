// Package structure renders the static half of the Caddy configuration, which only another set of options changes: the
// HTTP servers, the TLS policies, and the settings of Caddy that all of it relies on.
package structure

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddytls"

	"github.com/k8singress/k8singress/internal/document"
	"github.com/k8singress/k8singress/internal/settings"
)

// Names of our servers in apps.http.servers.
const (
	HTTPServer   = "k8singress_http"
	HTTPSServer  = "k8singress_https"
	HealthServer = "k8singress_health"
)

// ours are those names, in the order in which they are put in.
var ours = []string{HTTPServer, HTTPSServer, HealthServer}

const (
	// maxHeaderBytes is what ingress-nginx takes by default: four buffers of 8 KiB. Caddy's own default is half of it.
	maxHeaderBytes = 32 << 10
	// certificates is how many the cache of Caddy holds at least. A full one drops certificates at random.
	certificates = 20_000
)

// Times that ingress-nginx has by default.
const (
	// headerTimeout is client-header-timeout: how long the head of a request may take.
	headerTimeout = caddy.Duration(time.Minute)
	// bodyTimeout is client-body-timeout and send-timeout: how long nothing may come in of a body, or go out of an answer.
	bodyTimeout = caddy.Duration(time.Minute)
	// keepAlive is keep-alive: how long a connection may be without a request.
	keepAlive = caddy.Duration(75 * time.Second)
)

// probeTimeout is how long the head of a probe may take.
const probeTimeout = caddy.Duration(10 * time.Second)

// handshakeTimeout is how long a TLS handshake may take. Go's own limit is the one for the head of a request.
const handshakeTimeout = caddy.Duration(10 * time.Second)

// Structure returns the parts of a Caddy configuration that the options ask for, in a tree as encoding/json decodes it.
// Options that are not given count with their defaults.
func Structure(c settings.Config) map[string]any {
	persist := false
	apps := map[string]any{
		"http":       httpApp(c.WithDefaults()),
		"tls":        tlsApp(c),
		"k8singress": c.WithoutDefaults(),
	}
	if keepsToItself(c) {
		apps["pki"] = pkiApp()
	}
	return Tree(map[string]any{
		"admin": &caddy.AdminConfig{Config: &caddy.ConfigSettings{Persist: &persist}}, "apps": apps,
	})
}

func httpApp(c settings.Config) *caddyhttp.App {
	return &caddyhttp.App{
		Servers: servers(c), Metrics: &caddyhttp.Metrics{},
		ShutdownDelay: caddy.Duration(c.ShutdownDelay), GracePeriod: caddy.Duration(c.ShutdownTimeout),
	}
}

func servers(c settings.Config) map[string]*caddyhttp.Server {
	all := map[string]*caddyhttp.Server{}
	if len(c.HTTP) > 0 {
		all[HTTPServer] = server(c.HTTP)
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

// wrapper is that of the HTTP server. It says whether h2c is spoken, and not the protocols of the server: these are the administrator's.
func wrapper(c settings.Config) json.RawMessage {
	options := map[string]any{"wrapper": "k8singress"}
	if c.H2C {
		options["h2c"] = true
	}
	return document.Encode(options)
}

// server leaves certificates alone: which hosts there are is known to the tables only.
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

// healthServer is for probes only: they speak HTTP/1.1, and are not worth a line in the log.
func healthServer(c settings.Config) *caddyhttp.Server {
	return &caddyhttp.Server{
		Listen:            []string{c.Health},
		ReadHeaderTimeout: probeTimeout,
		Protocols:         []string{"h1"},
		AutoHTTPS:         &caddyhttp.AutoHTTPSConfig{Disabled: true},
		Routes:            healthRoutes(c),
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
	routes := caddyhttp.RouteList{{HandlersRaw: []json.RawMessage{document.Encode(probes)}}}
	if !c.HealthMetrics {
		return routes
	}
	return slices.Insert(routes, 0, caddyhttp.Route{
		MatcherSetsRaw: caddyhttp.RawMatcherSets{{"path": json.RawMessage(`["/metrics"]`)}},
		HandlersRaw:    []json.RawMessage{json.RawMessage(`{"handler":"metrics"}`)},
	})
}

// only are routes that leave every request to one handler.
func only(handler string) caddyhttp.RouteList {
	return caddyhttp.RouteList{{HandlersRaw: []json.RawMessage{document.Encode(map[string]string{"handler": handler})}}}
}

// tlsApp has one policy that catches every name. It asks the table of certificates, which has an answer for each, so that
// Caddy never comes to ask an issuer during a handshake. Its issuers answer the challenges that any replica has begun.
func tlsApp(c settings.Config) *caddytls.TLS {
	return &caddytls.TLS{
		Automation: &caddytls.AutomationConfig{Policies: []*caddytls.AutomationPolicy{{
			ManagersRaw: []json.RawMessage{json.RawMessage(`{"via":"k8singress"}`)},
			IssuersRaw:  Issuers(c),
		}}},
		Cache:               &caddytls.CertCacheOptions{Capacity: certificates},
		DisableOCSPStapling: true,
		DisableStorageCheck: true,
	}
}

// Issuers returns the modules that issue certificates for hosts of Ingresses, in the order in which they are asked. It
// is empty where the options leave them to Caddy.
func Issuers(c settings.Config) []json.RawMessage {
	switch {
	case len(c.Issuers) > 0:
		return c.Issuers
	case c.Email == "" && c.ACMECA == "":
		return nil
	}
	return []json.RawMessage{document.EncodeModule("module", "acme", &caddytls.ACMEIssuer{Email: c.Email, CA: c.ACMECA})}
}

// Tree turns Caddy's structs into what encoding/json decodes them to, so that trees can be compared and merged.
func Tree(v any) map[string]any {
	var result map[string]any
	if err := json.Unmarshal(document.Encode(v), &result); err != nil {
		panic(err)
	}
	return result
}
