package engine

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/k8singress/k8singress/internal/control/structure"
	"github.com/k8singress/k8singress/internal/http/accesslog"
	"github.com/k8singress/k8singress/internal/http/caddylog"
	"github.com/k8singress/k8singress/internal/http/meter"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/settings"
	"github.com/k8singress/k8singress/internal/translate"
	"github.com/k8singress/k8singress/internal/translate/ingress"
	"github.com/k8singress/k8singress/internal/translate/ownership"
	"github.com/k8singress/k8singress/internal/translate/streams"
	"github.com/k8singress/k8singress/internal/upstream/reach"
	"github.com/k8singress/k8singress/internal/upstream/resolver"
)

// options returns the controller's options for the translation of Kubernetes objects.
func options(o settings.Config) translate.Options {
	var t translate.Options
	t.Ingress.ControllerName, t.Ingress.ClassName = o.ControllerName, o.IngressClass
	t.Ingress.ClassByName = o.IngressClassByName
	t.Ingress.WatchWithoutClass = o.WatchIngressWithoutClass
	t.Ingress.Namespaces = namespaces(o)
	t.Ingress.DisableCatchAll = o.DisableCatchAll
	t.Ingress.ExternalNames, t.Ingress.Passthrough = o.ExternalNames, o.SSLPassthrough
	t.Listeners = listeners(o.WithDefaults())
	if i := slices.IndexFunc(t.Listeners, func(l ir.Listener) bool { return l.Protocol == ir.ListenerHTTPS }); i >= 0 {
		t.Ingress.HTTPSPort = int(t.Listeners[i].Port)
	}
	t.Streams.ExternalNames = t.Ingress.ExternalNames
	t.Ingress.Folder = o.Source != nil && o.Source.Manifests != nil
	t.ConfigMap, t.Views = o.ConfigMap, o.AdmissionWebhook != nil
	t.Streams.TCP, t.Streams.UDP = o.TCPServices, o.UDPServices
	t.Streams.Reserved = reserved(o)
	t.Streams.Services = servicePorts(o, t.Ingress.Namespaces)
	t.Streams.Most = ir.StreamPolicy{
		MaxConnections: cmp.Or(o.ServiceMaxConnections, settings.DefaultServiceMaxConnections),
		IdleTimeout:    time.Duration(cmp.Or(o.ServiceMaxIdleTimeout, settings.DefaultServiceMaxIdleTimeout)),
	}
	t.Streams.NoIssuer, t.Streams.NoIssuerFor = o.AutoHTTPS == settings.AutoHTTPSOff, o.AutoHTTPSExcept
	t.Streams.Chains = slices.Sorted(maps.Keys(o.StreamChains))
	t.Ingress.Defaults.AvailableChains = slices.Sorted(maps.Keys(o.Chains))
	t.Ingress.DefaultChains = o.DefaultChains
	t.Ingress.Defaults.IgnoreSnippets = o.Snippets == settings.SnippetsIgnore
	t.DefaultCertificate, t.DefaultBackend = o.DefaultCertificate, o.DefaultBackend
	t.Ingress.Defaults.ErrorPages.HasDefault = !o.DefaultBackend.IsZero()
	t.Ingress.Issuance = issuing(o)
	t.Ownership = owning(o)
	if o.Source != nil && o.Source.Kubernetes != nil {
		t.Namespaces = o.Source.Kubernetes.Namespaces
	}
	t.HostsPerNamespace = cmp.Or(o.HostsPerNamespace, settings.DefaultHostsPerNamespace)
	return t
}

// issuing returns the options that determine for which hosts certificates are ordered from the configured issuers.
func issuing(o settings.Config) ingress.Issuance {
	able := structure.AbilitiesOf(o)
	return ingress.Issuance{
		Mode: o.AutoHTTPS, Except: o.AutoHTTPSExcept, OnMissingSecret: o.ACMEOnMissingSecret,
		OnDemand: o.OnDemand != nil,
		AnyName:  able.AnyName, Wildcards: able.Wildcards,
	}
}

// owning returns the policy that decides which namespace may use a host if several namespaces define it. An unknown
// value of the option host_ownership is treated as the strictest one.
func owning(o settings.Config) ownership.Policy {
	return ownership.Policy{
		Exclusive: o.HostOwnership != "" && o.HostOwnership != settings.HostOwnershipShared,
		Reserved:  o.HostOwners, Solvers: o.ACMESolverNamespaces,
	}
}

// naming returns the options of the resolver for ExternalName Services. An unknown value of external_names is treated
// as the strictest one.
func naming(o settings.Config) resolver.Options {
	access := resolver.Nothing
	switch o.ExternalNames {
	case "":
		access = resolver.Usual
	case settings.ExternalNamesAll:
		access = resolver.Everything
	}
	return resolver.Options{Servers: o.Resolvers, Access: access}
}

// reaching returns the options that determine to which addresses connections are allowed. The Caddyfile adapter rejects
// invalid networks. In a JSON configuration, an invalid network in reach_allow is ignored, and an invalid network in
// reach_deny denies connections to all networks.
func reaching(o settings.Config) reach.Options {
	options := reach.Options{AnyName: o.ExternalNames == settings.ExternalNamesAll}
	for _, text := range o.ReachAllow {
		if n, err := reach.ParseNetwork(text); err == nil {
			options.Allow = append(options.Allow, n)
		}
	}
	for _, text := range o.ReachDeny {
		n, err := reach.ParseNetwork(text)
		if err != nil {
			options.Deny = append(options.Deny, netip.PrefixFrom(netip.IPv4Unspecified(), 0),
				netip.PrefixFrom(netip.IPv6Unspecified(), 0))
			continue
		}
		options.Deny = append(options.Deny, n)
	}
	return options
}

// nginxOptions returns the options of the metrics with the names of ingress-nginx, or nil if there are none.
func nginxOptions(m *settings.NginxMetrics) *meter.NginxOptions {
	if !m.On() {
		return nil
	}
	o := &meter.NginxOptions{
		WithoutHost: m.WithoutHost, UndefinedHosts: m.UndefinedHosts, StatusClasses: m.StatusClasses,
		Times: m.TimeBuckets, Lengths: m.LengthBuckets, Sizes: m.SizeBuckets, Factor: m.BucketFactor,
		MaxBuckets: uint32(cmp.Or(m.MaxBuckets, settings.DefaultMaxBuckets)),
		MaxSets:    cmp.Or(m.MaxLabelSets, settings.DefaultMaxLabelSets),
	}
	if o.Times == nil {
		o.Times = prometheus.DefBuckets
	}
	if o.Lengths == nil {
		o.Lengths = prometheus.LinearBuckets(10, 10, 10)
	}
	if o.Sizes == nil {
		o.Sizes = prometheus.ExponentialBuckets(10, 10, 7)
	}
	for i := range o.Excluded {
		o.Excluded[i] = slices.Contains(m.Exclude, meter.NginxMetric(i).Name())
	}
	return o
}

// adminAddress returns the address of Caddy's admin API, or settings.AdminOff. The environment variable CADDY_ADMIN
// changes the default.
// accessLog returns the access log of requests in Caddy's format, or nil if the ConfigMap sets the format.
func accessLog(o settings.Config) accesslog.Output {
	if o.AccessLog != settings.AccessLogCaddy {
		return nil
	}
	return caddylog.New(caddylog.Settings{Credentials: o.LogCredentials})
}

func adminAddress(o settings.Config) string { return cmp.Or(o.Admin, caddy.DefaultAdminListen) }

// ownAddresses returns the addresses on which this process listens for the administrator, such as the address of the
// admin API.
func ownAddresses(o settings.Config) []string {
	var all []string
	for _, each := range []string{adminAddress(o), o.Health, o.AdmissionWebhook.Address()} {
		if each != "" && each != settings.AdminOff {
			all = append(all, each)
		}
	}
	return all
}

// serverAddresses returns the addresses on which this process listens for clients, including UDP for HTTP/3.
func serverAddresses(o settings.Config) []string {
	all := slices.Concat(o.HTTP, o.HTTPS)
	if o.HTTP3 == settings.HTTP3Off {
		return all
	}
	for _, text := range o.HTTPS {
		if a, err := caddy.ParseNetworkAddressWithDefaults(text, "tcp", 0); err == nil && !a.IsUnixNetwork() {
			a.Network = "udp"
			all = append(all, a.String())
		}
	}
	return all
}

// namespaces returns the selector of the namespaces whose Ingresses are served, or nil for all namespaces. An invalid
// selector is rejected when the source is created; here it matches no namespace.
func namespaces(o settings.Config) labels.Selector {
	if o.Source == nil || o.Source.Kubernetes == nil || o.Source.Kubernetes.NamespaceSelector == "" {
		return nil
	}
	selector, err := labels.Parse(o.Source.Kubernetes.NamespaceSelector)
	if err != nil {
		return labels.Nothing()
	}
	return selector
}

// servicePorts returns the options for the TCP and UDP ports that annotations of Services may open. An invalid port
// range is ignored, because the Caddyfile adapter rejects it.
func servicePorts(o settings.Config, namespaces labels.Selector) streams.ServicePorts {
	read := func(texts []string) []settings.PortRange {
		var ranges []settings.PortRange
		for _, text := range texts {
			if r, err := settings.ParsePortRange(text); err == nil {
				ranges = append(ranges, r)
			}
		}
		return ranges
	}
	return streams.ServicePorts{
		TCP: read(o.ServiceTCPPorts), UDP: read(o.ServiceUDPPorts), Namespaces: o.ServicePortNamespaces,
		Selector: namespaces, Folder: o.Source != nil && o.Source.Manifests != nil,
		PerNamespace: cmp.Or(o.ServicePortsPerNamespace, settings.DefaultServicePortsPerNamespace),
	}
}

// reserved returns the ports on which this process listens itself. Annotations of Services must not open these ports.
// Caddy would not report the conflict, because listeners of one process can share a port.
func reserved(o settings.Config) []streams.ReservedPort {
	var all []streams.ReservedPort
	for _, own := range []struct {
		owner     string
		addresses []string
		// HTTP/3 uses UDP.
		udp bool
	}{
		{"http", o.HTTP, false}, {"https", o.HTTPS, o.HTTP3 != settings.HTTP3Off},
		{"admin", []string{adminAddress(o)}, false}, {"health", []string{o.Health}, false},
		{"admission_webhook", []string{o.AdmissionWebhook.Address()}, false},
	} {
		for _, port := range portsOf(own.addresses) {
			all = append(all, streams.ReservedPort{Protocol: ir.TCP, Port: port, Owner: own.owner})
			if own.udp {
				all = append(all, streams.ReservedPort{Protocol: ir.UDP, Port: port, Owner: own.owner})
			}
		}
	}
	return all
}

// listeners returns the listeners of the HTTP and HTTPS servers.
func listeners(o settings.Config) []ir.Listener {
	var all []ir.Listener
	for _, port := range portsOf(o.HTTP) {
		all = append(all, ir.Listener{Name: fmt.Sprintf("http-%d", port), Port: port, Protocol: ir.ListenerHTTP})
	}
	for _, port := range portsOf(o.HTTPS) {
		all = append(all, ir.Listener{Name: fmt.Sprintf("https-%d", port), Port: port, Protocol: ir.ListenerHTTPS})
	}
	return all
}

// portsOf returns the ports of network addresses. An invalid address is ignored here, because Caddy reports it.
func portsOf(addresses []string) []uint16 {
	var ports []uint16
	for _, address := range addresses {
		parsed, err := caddy.ParseNetworkAddressWithDefaults(address, "tcp", 0)
		if err != nil || parsed.IsUnixNetwork() {
			continue
		}
		for port := parsed.StartPort; port != 0 && port <= parsed.EndPort; port++ {
			ports = append(ports, uint16(port))
		}
	}
	return ports
}

// zoneOf returns the availability zone in which the process runs. It replaces placeholders in the option zone, such as
// an environment variable.
func zoneOf(o settings.Config) string { return caddy.NewReplacer().ReplaceAll(o.Zone, "") }
