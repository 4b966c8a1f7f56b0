// Package settings holds the options of the ingress controller, as they stand in the JSON of apps.k8singress. The global
// option of a Caddyfile writes them, and the engine reads them.
package settings

import (
	"slices"
)

// The defaults, where they are not those of ingress-nginx's own flags. The name of the Lease is one that ingress-nginx
// does not use, so that both can run side by side.
const (
	DefaultIngressClass   = "nginx"
	DefaultControllerName = "k8s.io/ingress-nginx"
	DefaultHTTP           = ":80"
	DefaultHTTPS          = ":443"
	DefaultElectionID     = "k8singress-leader"
	DefaultAdmin          = "localhost:2019"
)

// AdminOff is Config.Admin of a Caddy whose admin API is turned off.
const AdminOff = "off"

// ExternalNamesOn is the default of Config.ExternalNames. Whatever else stands there is off.
const ExternalNamesOn = "on"

// Config is the options of the controller. The zero value of a field stands for its default.
type Config struct {
	// Source is where the Kubernetes objects come from. Without one, nothing is followed, and the process serves the
	// documents that PUT /k8singress/config brings.
	Source *Source `json:"source,omitempty"`

	// IngressClass is the value of the older annotation kubernetes.io/ingress.class that is ours. spec.ingressClassName
	// names an IngressClass instead, and each one with our ControllerName is served, whatever its own name. Only with a
	// source of manifests, an Ingress may name this class there without such an object. Default: nginx.
	IngressClass string `json:"ingress_class,omitempty"`
	// ControllerName is the spec.controller of the IngressClasses that are ours. Default: k8s.io/ingress-nginx, because
	// the field of an IngressClass cannot be changed later.
	ControllerName string `json:"controller_name,omitempty"`
	// WatchIngressWithoutClass serves Ingresses that name no class, too. Default: false.
	WatchIngressWithoutClass bool `json:"watch_ingress_without_class,omitempty"`

	// DisableCatchAll refuses rules without a host, and Ingresses that are only a default backend: what would answer for
	// every host. Default: false.
	DisableCatchAll bool `json:"disable_catch_all,omitempty"`
	// ExternalNames is "on" or "off". With "off" no request is sent to a Service of type ExternalName. Default: on.
	ExternalNames string `json:"external_names,omitempty"`

	// HTTP are the addresses that answer HTTP. An empty list means none. Default: [":80"].
	HTTP []string `json:"http,omitzero"`
	// HTTPS are the addresses that answer HTTPS. An empty list means none. Default: [":443"].
	HTTPS []string `json:"https,omitzero"`

	// ConfigMap is the namespace/name of the ConfigMap with the global options of ingress-nginx. Default: none.
	ConfigMap string `json:"configmap,omitempty"`
	// TCPServices is the namespace/name of the ConfigMap with the TCP ports. Default: none.
	TCPServices string `json:"tcp_services,omitempty"`
	// UDPServices is the namespace/name of the ConfigMap with the UDP ports. Default: none.
	UDPServices string `json:"udp_services,omitempty"`
	// StreamBind are the IP addresses that TCP and UDP ports listen on. Default: all.
	StreamBind []string `json:"stream_bind,omitempty"`

	// PublishService is the namespace/name of the Service whose address is written to the status of Ingresses.
	// Default: none.
	PublishService string `json:"publish_service,omitempty"`
	// PublishAddress are the IP addresses and host names that are written to the status of Ingresses. Default: none.
	PublishAddress []string `json:"publish_address,omitempty"`

	// DefaultCertificate is the namespace/name of the Secret that answers for names without a certificate.
	// Default: a self-signed one.
	DefaultCertificate string `json:"default_certificate,omitempty"`
	// Email is the address that the certificate authority may write to about the certificates of Ingress hosts. It has no
	// effect yet, because no certificate is asked for on their behalf. Default: none.
	Email string `json:"email,omitempty"`
	// ACMECA is the URL of the directory of the certificate authority for the certificates of Ingress hosts. It has no
	// effect yet, as Email. Default: those of Caddy.
	ACMECA string `json:"acme_ca,omitempty"`

	// ElectionID is the name of the Lease whose holder writes status and Events. Default: k8singress-leader.
	ElectionID string `json:"election_id,omitempty"`
	// ElectionNamespace is the namespace of that Lease. Default: the namespace that the process runs in.
	ElectionNamespace string `json:"election_namespace,omitempty"`

	// Admin is the address of Caddy's admin API, or "off". Default: localhost:2019.
	Admin string `json:"admin,omitempty"`
}

// Source is where the Kubernetes objects come from: one of its fields.
type Source struct {
	// Kubernetes is an API server.
	Kubernetes *Kubernetes `json:"kubernetes,omitempty"`
	// Manifests is a folder of files.
	Manifests *Manifests `json:"manifests,omitempty"`
}

// Kubernetes is an API server that objects come from.
type Kubernetes struct {
	// Kubeconfig is the path of a kubeconfig file. Default: the service account of the pod that the process runs in.
	Kubeconfig string `json:"kubeconfig,omitempty"`
	// Namespaces limits what is followed to these. Default: all.
	Namespaces []string `json:"namespaces,omitempty"`
	// NamespaceSelector is a label selector, such as "team=shop,tier!=test". Ingresses in namespaces whose labels it does
	// not match are not served, and their status is left alone. Default: all.
	NamespaceSelector string `json:"namespace_selector,omitempty"`
}

// Manifests is a folder that objects come from.
type Manifests struct {
	// Dir is the folder. Its YAML and JSON files are read, and followed when they change.
	Dir string `json:"dir"`
}

// Defaults returns the options of somebody who gives none.
func Defaults() Config {
	return Config{
		IngressClass:   DefaultIngressClass,
		ControllerName: DefaultControllerName,
		HTTP:           []string{DefaultHTTP},
		HTTPS:          []string{DefaultHTTPS},
		ExternalNames:  ExternalNamesOn,
		ElectionID:     DefaultElectionID,
		Admin:          DefaultAdmin,
	}
}

// WithDefaults returns the options with the defaults in place of what is not given. The namespace of the Lease is left
// as it is, because only the process knows where it runs.
func (c Config) WithDefaults() Config {
	d := Defaults()
	setDefault(&c.IngressClass, d.IngressClass)
	setDefault(&c.ControllerName, d.ControllerName)
	setDefault(&c.ExternalNames, d.ExternalNames)
	setDefault(&c.ElectionID, d.ElectionID)
	setDefault(&c.Admin, d.Admin)
	if c.HTTP == nil {
		c.HTTP = d.HTTP
	}
	if c.HTTPS == nil {
		c.HTTPS = d.HTTPS
	}
	return c
}

// WithoutDefaults returns the options without those that say what the default says.
func (c Config) WithoutDefaults() Config {
	d := Defaults()
	dropDefault(&c.IngressClass, d.IngressClass)
	dropDefault(&c.ControllerName, d.ControllerName)
	dropDefault(&c.ExternalNames, d.ExternalNames)
	dropDefault(&c.ElectionID, d.ElectionID)
	dropDefault(&c.Admin, d.Admin)
	if slices.Equal(c.HTTP, d.HTTP) {
		c.HTTP = nil
	}
	if slices.Equal(c.HTTPS, d.HTTPS) {
		c.HTTPS = nil
	}
	return c
}

func setDefault(field *string, value string) {
	if *field == "" {
		*field = value
	}
}

func dropDefault(field *string, value string) {
	if *field == value {
		*field = ""
	}
}
