package caddyfile

import (
	"strings"

	"github.com/k8singress/k8singress/internal/suggest"
)

// flags are flags of ingress-nginx, spelt as options, that have another name here. docs/migrate.md lists them, too.
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

// nearestOption returns the end of the message on an unknown option: the one that was probably meant, or nothing. It may be a flag
// of ingress-nginx.
func nearestOption(word string) string {
	word, _, _ = strings.Cut(strings.ReplaceAll(strings.TrimLeft(word, "-"), "-", "_"), "=")
	if name := flags[word]; name != "" {
		return "; did you mean " + name + "?"
	}
	return suggest.Hint(word, options.Names())
}
