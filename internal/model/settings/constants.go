package settings

import "time"

// The default values of the most important options, and of options whose defaults differ from ingress-nginx's flags.
// DefaultElectionID differs from the name of ingress-nginx's Lease, so that both controllers can run side by side.
const (
	DefaultIngressClass   = "nginx"
	DefaultControllerName = "k8s.io/ingress-nginx"
	DefaultHTTP           = ":80"
	DefaultHTTPS          = ":443"
	DefaultElectionID     = "k8singress-leader"
)

// DefaultAdmissionWebhook is the default of AdmissionWebhook.Listen. It is the port of ingress-nginx's webhook.
const DefaultAdmissionWebhook = ":8443"

// DefaultShutdownTimeout is the default of ingress-nginx's worker-shutdown-timeout.
const DefaultShutdownTimeout = Duration(240 * time.Second)

// The default limits for TCP and UDP ports that Services open with annotations.
const (
	DefaultServicePortsPerNamespace = 32
	DefaultServiceMaxConnections    = 16 << 10
	DefaultServiceMaxIdleTimeout    = Duration(time.Hour)
)

// DefaultHostsPerNamespace is the default of Config.HostsPerNamespace. It prevents one namespace from using up the
// weekly rate limit of a certificate authority.
const DefaultHostsPerNamespace = 100

// DefaultMaxLabelSets is the default of NginxMetrics.MaxLabelSets. One label set has 93 series. DefaultMaxBuckets is
// the default of NginxMetrics.MaxBuckets.
const (
	DefaultMaxLabelSets = 5000
	DefaultMaxBuckets   = 100
)

// MinElectionTTL is the minimum value of Config.ElectionTTL. The holder of the Lease renews it several times within
// this time.
const MinElectionTTL = 5 * time.Second

// AdminOff is the value of Config.Admin if the admin API is turned off.
const AdminOff = "off"

// ExternalNamesAll and ExternalNamesOff are the values of Config.ExternalNames.
const (
	ExternalNamesAll = "all"
	ExternalNamesOff = "off"
)

// AccessLogOff is the value of Config.AccessLog that disables the access log. AccessLogCaddy selects Caddy's format.
const (
	AccessLogOff   = "off"
	AccessLogCaddy = "caddy"
)

// ErrorBodiesOff is the value of Config.ErrorBodies with which the controller's error responses have no body.
const ErrorBodiesOff = "off"

// SnippetsIgnore is the value of Config.Snippets with which Ingresses are served without their snippets.
const SnippetsIgnore = "ignore"

// HTTP3Off is the value of Config.HTTP3 that disables HTTP/3.
const HTTP3Off = "off"

// PublishNodesInternal and PublishNodesExternal are the values of Config.PublishNodes.
const (
	PublishNodesInternal = "internal"
	PublishNodesExternal = "external"
)

// ElectionOff is the value of Config.Election that disables leader election.
const ElectionOff = "off"

// StatusOff is the value of Config.Status with which no addresses are written to the status of Ingresses.
const StatusOff = "off"

// AutoHTTPSAll and AutoHTTPSOff are the values of Config.AutoHTTPS.
const (
	AutoHTTPSAll = "all"
	AutoHTTPSOff = "off"
)

// HostOwnershipShared and HostOwnershipNamespace are the values of Config.HostOwnership.
const (
	HostOwnershipShared    = "shared"
	HostOwnershipNamespace = "namespace"
)

// SecretsAll and SecretsReferenced are the values of Kubernetes.Secrets.
const (
	SecretsAll        = "all"
	SecretsReferenced = "referenced"
)
