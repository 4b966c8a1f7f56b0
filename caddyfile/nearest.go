package caddyfile

import (
	"strings"

	"github.com/k8singress/k8singress/internal/suggest"
)

// flags are those of ingress-nginx, as an option would be written, that have another name here. The documentation of the
// move from there has them, too.
var flags = map[string]string{
	"tcp_services_configmap":   "tcp_services",
	"udp_services_configmap":   "udp_services",
	"default_ssl_certificate":  "default_certificate",
	"publish_status_address":   "publish_address",
	"controller_class":         "controller_name",
	"watch_namespace":          "namespaces",
	"watch_namespace_selector": "namespace_selector",
	"enable_ssl_passthrough":   "ssl_passthrough",
	"http_port":                "http",
	"https_port":               "https",
	"healthz_port":             "health",
	"shutdown_grace_period":    "shutdown_delay",

	"disable_svc_external_name": "external_names off",
}

// nearestOption returns the option that a word was probably meant to be, or nothing. People bring the flags of ingress-nginx
// with them.
func nearestOption(word string) string {
	word, _, _ = strings.Cut(strings.ReplaceAll(strings.TrimLeft(word, "-"), "-", "_"), "=")
	if name := flags[word]; name != "" {
		return name
	}
	names := make([]string, len(options))
	for i := range options {
		names[i] = options[i].name
	}
	return suggest.Of(word, names)
}
