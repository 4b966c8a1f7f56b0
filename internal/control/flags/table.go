package flags

import (
	_ "embed"
	"strings"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/option"
	"github.com/k8singress/k8singress/internal/model/settings"
)

// ignored lists the flags without an effect, one per line. A line consists of the name, whether the flag is boolean or
// takes a value, and the reason. Messages and the documentation contain the reason.
//
//go:embed ignored.txt
var ignored string

// Table lists the flags of ingress-nginx v1.15.1, including klog's flags, and some flags that ingress-nginx has
// removed.
var Table = append(effective, readIgnored(ignored)...)

func readIgnored(lines string) (rows option.Table[Settings, string]) {
	for line := range strings.Lines(lines) {
		name, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		kind, reason, _ := strings.Cut(rest, " ")
		row := Row{Name: name, Values: text, Ignored: reason}
		if kind == "boolean" {
			row.Values = boolean
		}
		rows = append(rows, row)
	}
	return rows
}

// effective lists the flags with an effect.
var effective = option.Table[Settings, string]{
	{
		Name: "configmap", Values: named, Default: "none", Example: "ingress-nginx/ingress-nginx-controller",
		Scope: "configmap",
		Doc:   "The ConfigMap with the global options of ingress-nginx.",
		Parse: set(func(c *settings.Config) *ir.Name { return &c.ConfigMap }, ir.ParseName),
	},
	{
		Name: "tcp-services-configmap", Values: named, Default: "none", Example: "ingress-nginx/tcp-services",
		Scope: "tcp_services",
		Doc:   "The ConfigMap with the TCP ports to open, in the format of ingress-nginx.",
		Parse: set(func(c *settings.Config) *ir.Name { return &c.TCPServices }, ir.ParseName),
	},
	{
		Name: "udp-services-configmap", Values: named, Default: "none", Example: "ingress-nginx/udp-services",
		Scope: "udp_services",
		Doc:   "The ConfigMap with the UDP ports to open, in the format of ingress-nginx.",
		Parse: set(func(c *settings.Config) *ir.Name { return &c.UDPServices }, ir.ParseName),
	},
	{
		Name: "default-ssl-certificate", Values: named, Default: "none", Example: "ingress-nginx/fallback",
		Scope: "default_certificate",
		Doc: "The Secret with the certificate for server names for which there is no " +
			"other certificate.",
		Parse: set(func(c *settings.Config) *ir.Name { return &c.DefaultCertificate }, ir.ParseName),
	},
	{
		Name: "default-backend-service", Values: named, Default: "none", Example: "ingress-nginx/default-backend",
		Scope: "default_backend",
		Doc:   "The Service for requests that do not match a host and path of an Ingress.",
		Parse: set(func(c *settings.Config) *ir.ServicePort { return &c.DefaultBackend }, ir.ParseServicePort),
	},
	{
		Name: "publish-service", Values: named, Default: "none", Example: "ingress-nginx/ingress-nginx-controller",
		Scope: "publish_service",
		Doc:   "The Service whose addresses are written to the status of Ingresses.",
		Parse: set(func(c *settings.Config) *ir.Name { return &c.PublishService }, ir.ParseName),
	},
	{
		Name: "publish-status-address", Values: text, Default: "none", Example: "192.0.2.1", Scope: "publish_address",
		Doc:   "The addresses that are written to the status of Ingresses, separated by commas.",
		Parse: set(func(c *settings.Config) *[]string { return &c.PublishAddress }, readList),
	},
	{
		Name: "report-node-internal-ip-address", Values: boolean, Default: "false", Example: "true",
		Scope: "publish_nodes",
		Doc: "Without `--publish-service` and `--publish-status-address`, the status of Ingresses contains the " +
			"addresses of the nodes on which the controller's pods run: with `true`, the internal addresses of the " +
			"nodes, and with `false`, the external addresses.",
		Parse: func(s *Settings, value string) (err error) {
			s.internalNodes, err = readBool(value)
			return err
		},
	},
	{
		Name: "update-status", Values: boolean, Default: "true", Example: "false", Scope: "status",
		Doc:   "With `false`, the status of Ingresses is not updated.",
		Parse: set(func(c *settings.Config) *string { return &c.Status }, readUpdateStatus),
	},
	{
		Name: "controller-class", Values: text, Default: "k8s.io/ingress-nginx", Example: "example.com/edge",
		Scope: "controller_name",
		Doc:   "The `spec.controller` of the IngressClasses that this controller serves.",
		Parse: set(func(c *settings.Config) *string { return &c.ControllerName }, readText),
	},
	{
		Name: "ingress-class", Values: text, Default: "nginx", Example: "edge", Scope: "ingress_class",
		Doc: "The value of the older annotation `kubernetes.io/ingress.class` with which an Ingress selects " +
			"this controller.",
		Parse: set(func(c *settings.Config) *string { return &c.IngressClass }, readText),
	},
	{
		Name: "ingress-class-by-name", Values: boolean, Default: "false", Example: "true",
		Scope: "ingress_class_by_name",
		Doc: "Also serves Ingresses of the IngressClass with the name in `--ingress-class`, whatever the " +
			"`spec.controller` of this IngressClass is.",
		Parse: set(func(c *settings.Config) *bool { return &c.IngressClassByName }, readBool),
	},
	{
		Name: "watch-ingress-without-class", Values: boolean, Default: "false", Example: "true",
		Scope: "watch_ingress_without_class",
		Doc:   "Also serves Ingresses without a class.",
		Parse: set(func(c *settings.Config) *bool { return &c.WatchIngressWithoutClass }, readBool),
	},
	{
		Name: "watch-namespace", Values: text, Default: "all", Example: "shop", Scope: "namespaces",
		Doc: "The only namespace whose objects are watched.",
		Parse: func(s *Settings, value string) (err error) {
			s.kubernetes().Namespaces, err = readList(value)
			return err
		},
	},
	{
		Name: "watch-namespace-selector", Values: text, Default: "all", Example: "team=shop",
		Scope: "namespace_selector",
		Doc: "Serves only Ingresses of namespaces whose labels match, such as `team=shop` or `\"team in " +
			"(shop, web)\"`.",
		Parse: func(s *Settings, value string) error {
			s.kubernetes().NamespaceSelector = value
			return nil
		},
	},
	{
		Name: "disable-catch-all", Values: boolean, Default: "false", Example: "true", Scope: "disable_catch_all",
		Doc: "Rejects rules without a host, Ingresses that only have a default backend, and aliases " +
			"(`server-alias`) that are regular expressions or wildcards below a public suffix, such as " +
			"`*.com`.",
		Parse: set(func(c *settings.Config) *bool { return &c.DisableCatchAll }, readBool),
	},
	{
		Name: "enable-ssl-passthrough", Values: boolean, Default: "false", Example: "true", Scope: "ssl_passthrough",
		Doc: "Enables the annotation `ssl-passthrough`, with which an Ingress forwards the TLS connections of " +
			"its hosts to a backend that terminates TLS itself.",
		Parse: set(func(c *settings.Config) *bool { return &c.SSLPassthrough }, readBool),
	},
	{
		Name: "disable-svc-external-name", Values: boolean, Default: "false", Example: "true", Scope: "external_names",
		Doc:   "Rejects Services of type ExternalName.",
		Parse: set(func(c *settings.Config) *string { return &c.ExternalNames }, readExternalNames),
	},
	{
		Name: "http-port", Values: port, Default: "80", Example: "8080", Scope: "http",
		Doc:   "The HTTP port.",
		Parse: set(func(c *settings.Config) *[]string { return &c.HTTP }, readAddress),
	},
	{
		Name: "https-port", Values: port, Default: "443", Example: "8443", Scope: "https",
		Doc:   "The HTTPS port.",
		Parse: set(func(c *settings.Config) *[]string { return &c.HTTPS }, readAddress),
	},
	{
		Name: "healthz-port", Values: port, Default: "10254", Example: "10254", Scope: "health",
		Doc: "The port for health probes and `/metrics`.",
		Parse: func(s *Settings, value string) (err error) {
			s.healthPort, err = readPort(value)
			return err
		},
	},
	{
		Name: "healthz-host", Values: text, Default: "all addresses", Example: "127.0.0.1", Scope: "health",
		Doc: "The listen address of `--healthz-port`.",
		Parse: func(s *Settings, value string) error {
			s.healthHost = value
			return nil
		},
	},
	{
		Name: "health-check-path", Values: path, Default: "/healthz", Example: "/alive", Scope: "health_path",
		Doc:   "The path of the liveness probe.",
		Parse: set(func(c *settings.Config) *string { return &c.HealthPath }, readPath),
	},
	{
		Name: "enable-metrics", Values: boolean, Default: "true", Example: "false", Scope: "health_metrics",
		Doc:   "Serves `/metrics` on the port for health probes.",
		Parse: set(func(c *settings.Config) *bool { return &c.HealthMetrics }, readBool),
	},
	{
		Name: "validating-webhook", Values: address, Default: "none", Example: ":8443", Scope: "admission_webhook",
		Doc: "The address of [the webhook](webhook.md) that checks Ingresses before they are created or changed.",
		Parse: func(s *Settings, value string) (err error) {
			s.webhook.Listen, err = readListen(value)
			return err
		},
	},
	{
		Name: "validating-webhook-certificate", Values: text, Default: "none", Example: "/usr/local/certificates/cert",
		Scope: "admission_webhook",
		Doc:   "The PEM file with the certificate of the webhook. It is read again when it changes.",
		Parse: func(s *Settings, value string) error {
			s.webhook.Certificate = value
			return nil
		},
	},
	{
		Name: "validating-webhook-key", Values: text, Default: "none", Example: "/usr/local/certificates/key",
		Scope: "admission_webhook",
		Doc:   "The PEM file with the private key of the webhook. It is read again when it changes.",
		Parse: func(s *Settings, value string) error {
			s.webhook.Key = value
			return nil
		},
	},
	{
		Name: "metrics-per-host", Values: boolean, Default: "true", Example: "false", Scope: "nginx_metrics",
		Doc: "With `false`, the metrics of requests have no label `host`.",
		Parse: nginxMetric(func(m *settings.NginxMetrics) *bool { return &m.WithoutHost },
			func(value string) (bool, error) {
				with, err := readBool(value)
				return !with, err
			}),
	},
	{
		Name: "metrics-per-undefined-host", Values: boolean, Default: "false", Example: "true", Scope: "nginx_metrics",
		Doc: "Also counts requests that match no route: for undefined hosts, for undefined paths of a host, and " +
			"malformed requests. They share the label `host` with the value `_`, so that clients cannot create series.",
		Parse: nginxMetric(func(m *settings.NginxMetrics) *bool { return &m.UndefinedHosts }, readBool),
	},
	{
		Name: "report-status-classes", Values: boolean, Default: "false", Example: "true", Scope: "nginx_metrics",
		Doc:   "The label `status` is a class such as `2xx` instead of a status.",
		Parse: nginxMetric(func(m *settings.NginxMetrics) *bool { return &m.StatusClasses }, readBool),
	},
	{
		Name: "exclude-socket-metrics", Values: list, Default: "none", Scope: "nginx_metrics",
		Example: "nginx_ingress_controller_header_duration_seconds,response_size",
		Doc:     "The metrics of requests to leave out, separated by commas. Their prefix may be omitted.",
		Parse:   nginxMetric(func(m *settings.NginxMetrics) *[]string { return &m.Exclude }, readExcluded),
	},
	{
		Name: "time-buckets", Values: bounds, Default: "0.005,0.01,0.025,0.05,0.1,0.25,0.5,1,2.5,5,10",
		Example: "0.1,1,10", Scope: "nginx_metrics",
		Doc:   "The upper bounds of the histogram buckets for durations, in seconds.",
		Parse: nginxMetric(func(m *settings.NginxMetrics) *[]float64 { return &m.TimeBuckets }, readBounds),
	},
	{
		Name: "length-buckets", Values: bounds, Default: "10,20,30,40,50,60,70,80,90,100",
		Example: "100,1000", Scope: "nginx_metrics",
		Doc: "The upper bounds of the histogram buckets for `request_size` and `response_size`, in " +
			"bytes.",
		Parse: nginxMetric(func(m *settings.NginxMetrics) *[]float64 { return &m.LengthBuckets }, readBounds),
	},
	{
		Name: "size-buckets", Values: bounds, Default: "10,100,1000,10000,100000,1e+06,1e+07",
		Example: "1000,1e6", Scope: "nginx_metrics",
		Doc:   "The upper bounds of the histogram buckets for `bytes_sent`, in bytes.",
		Parse: nginxMetric(func(m *settings.NginxMetrics) *[]float64 { return &m.SizeBuckets }, readBounds),
	},
	{
		Name: "bucket-factor", Values: factor, Default: "0", Example: "1.1", Scope: "nginx_metrics",
		Doc: "A factor above 1 adds native histograms, in which each bound is at most this factor times the bound " +
			"before it. Prometheus gets them only if it asks for its protobuf format.",
		Parse: nginxMetric(func(m *settings.NginxMetrics) *float64 { return &m.BucketFactor },
			settings.ParseBucketFactor),
	},
	{
		Name: "max-buckets", Values: whole, Default: "100", Example: "50", Scope: "nginx_metrics",
		Doc:   "The maximum number of buckets of a native histogram.",
		Parse: nginxMetric(func(m *settings.NginxMetrics) *int { return &m.MaxBuckets }, readMaxBuckets),
	},
	{
		Name: "shutdown-grace-period", Values: seconds, Default: "0", Example: "10", Scope: "shutdown_delay",
		Doc:   "The number of seconds for which new requests are still accepted after the shutdown has begun.",
		Parse: set(func(c *settings.Config) *settings.Duration { return &c.ShutdownDelay }, readSeconds),
	},
	{
		Name: "election-id", Values: text, Default: "ingress-controller-leader", Example: "ingress-nginx-leader",
		Scope: "election_id",
		Doc: "The name of the Lease for leader election. The controller adds the prefix `k8singress-` to this name, " +
			"so that ingress-nginx with the same flags uses another Lease. If RBAC allows only the name without the " +
			"prefix, the controller uses this name.",
		Parse: func(s *Settings, value string) error {
			s.Config.ElectionID, s.Config.ElectionFallback = leasePrefix+value, value
			return nil
		},
	},
	{
		Name: "disable-leader-election", Values: boolean, Default: "false", Example: "true", Scope: "election",
		Doc:   "Disables leader election: every replica writes status and Events.",
		Parse: set(func(c *settings.Config) *string { return &c.Election }, readElection),
	},
	{
		Name: "election-ttl", Values: duration, Default: "30s", Example: "30s", Scope: "election_ttl",
		Doc:   "How long the Lease stays valid if its holder does not renew it.",
		Parse: set(func(c *settings.Config) *settings.Duration { return &c.ElectionTTL }, readDuration),
	},
	{
		Name: "kubeconfig", Values: text, Default: "the service account of the pod",
		Example: "/etc/kubernetes/admin.conf", Scope: "kubeconfig",
		Doc: "The path of a kubeconfig file for access to the API server.",
		Parse: func(s *Settings, value string) error {
			s.kubernetes().Kubeconfig = value
			return nil
		},
	},
	{
		Name: "annotations-prefix", Values: text, Default: "nginx.ingress.kubernetes.io",
		Example: "nginx.ingress.kubernetes.io",
		Doc: "Any prefix except the default is an error, because annotations with another prefix would be ignored, " +
			"and some of them restrict access.",
		Parse: only("nginx.ingress.kubernetes.io",
			"another prefix is not supported yet, and annotations with it may restrict access: use "+
				"nginx.ingress.kubernetes.io"),
	},
	{
		Name: "apiserver-host", Values: text, Default: "none", Example: "",
		Doc: "Not supported: any value is an error, because it could be the address of another cluster. Use " +
			"`--kubeconfig`.",
		Parse: only("", "this flag is not supported: set --kubeconfig to a file with this address"),
	},
	{
		Name: "certificate-authority", Values: text, Default: "none", Example: "",
		Doc:   "Not supported: any value is an error. Use `--kubeconfig`.",
		Parse: only("", "this flag is not supported: set --kubeconfig to a file with this certificate authority"),
	},
	{
		Name: "enable-ssl-chain-completion", Values: boolean, Default: "false", Example: "false",
		Doc: "`true` is not supported and is an error, because the controller would have to send requests to URLs in " +
			"the certificates of tenants.",
		Parse: only("false",
			"this would send requests to URLs in certificates: put the whole chain into tls.crt of each Secret"),
	},
	{
		Name: "v", Values: whole, Default: "0", Example: "2",
		Doc:   "The verbosity of the log. A value of 3 or more sets the log level DEBUG.",
		Parse: readLevel,
	},
}
