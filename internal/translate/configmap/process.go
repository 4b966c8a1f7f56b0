package configmap

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/k8singress/k8singress/internal/model/nginx"
)

// retryNonIdempotent is the ConfigMap key retry-non-idempotent. It applies to all Ingresses. An Ingress can set the
// same option in the annotation proxy-next-upstream.
var retryNonIdempotent = Key{
	Name: "retry-non-idempotent",
	Doc: "Also retries POST, LOCK and PATCH requests that an endpoint may already have received. This has the same " +
		"effect as adding `non_idempotent` to the proxy-next-upstream of every Ingress.",
	Values: booleans, Example: "true", Default: "false",
	Parse: nginx.Into(func(c *Config) *bool { return &c.Defaults.Asked.Retries.NonIdempotent }, nginx.Bool),
}

// maxConnections is the maximum of upstream-keepalive-connections. There cannot be more connections from one address to
// another, because each needs its own source port.
const maxConnections = 65535

// The ConfigMap keys for idle connections to endpoints, and for the shutdown.
var (
	upstreamKeepaliveConnections = Key{
		Name: "upstream-keepalive-connections", Scope: process,
		Doc: "The maximum number of idle connections that are kept open to each endpoint. With 0, no idle " +
			"connections are kept open.",
		Values: "a number from 0 to 65535", Example: "64", Default: "320",
		Parse: nginx.Into(func(c *Config) *int { return &c.Global.KeepAlive }, func(value string) (int, error) {
			n, err := nginx.Number(0, maxConnections)(value)
			if err == nil && n == 0 {
				n = -1
			}
			return n, err
		}),
	}
	upstreamKeepaliveTimeout = Key{
		Name: "upstream-keepalive-timeout", Scope: process,
		Doc:    "The number of seconds for which an idle connection to an endpoint is kept open.",
		Values: nginx.AreSeconds(1), Example: "30", Default: "60",
		Parse: nginx.Into(func(c *Config) *time.Duration { return &c.Global.KeepAliveTimeout }, readKeepalive),
	}
	workerShutdownTimeout = Key{
		Name: "worker-shutdown-timeout", Scope: process,
		Doc: "How long WebSockets and other long responses stay open after their route was removed, or changed so " +
			"that it no longer matches the request. The key also applies to connections of TCP and UDP ports, and to " +
			"TLS connections that ssl-passthrough forwards, when their port or route is removed. 0 means no limit.",
		Values: "a time such as 240s or 10m", Example: "10m", Default: "240s",
		Parse: nginx.Into(func(c *Config) *time.Duration { return &c.Global.Drain }, readDrain),
	}
)

// generateRequestID is the ConfigMap key generate-request-id. Its value is negated and stored in Global.NoRequestID,
// because the key is true by default.
var generateRequestID = Key{
	Name: "generate-request-id", Scope: process,
	Doc: "Adds an X-Request-ID header with 32 hexadecimal digits to requests without this header. Endpoints get the " +
		"header, and the variable $request_id has its value. With `false`, the header and the variable have the " +
		"value that the client sent, or are empty.",
	Values: booleans, Example: "false", Default: "true",
	Parse: nginx.Into(func(c *Config) *bool { return &c.Global.NoRequestID }, func(value string) (bool, error) {
		generates, err := nginx.Bool(value)
		return err == nil && !generates, err
	}),
}

// defaultType is the ConfigMap key default-type.
var defaultType = Key{
	Name: "default-type", Scope: process,
	Doc: "The Content-Type of responses of [return in snippets](snippets.md), unless the snippet contains " +
		"`default_type`, or the path has an extension for which nginx has a type, such as `.json`. Other responses " +
		"of the controller, and responses of endpoints, keep their own type.",
	Values: "a media type without parameters", Example: "text/plain", Default: "text/html",
	Parse: nginx.Into(func(c *Config) *string { return &c.Global.DefaultType }, readMediaType),
}

func readMediaType(value string) (string, error) {
	kind, subtype, _ := strings.Cut(value, "/")
	for _, word := range []string{kind, subtype} {
		if _, err := nginx.Token(word); err != nil {
			return "", fmt.Errorf("%s is not a media type: write a type such as text/plain, without parameters",
				nginx.Quote(value))
		}
	}
	return value, nil
}

func readKeepalive(value string) (time.Duration, error) {
	if value == "0" {
		return 0,
			errors.New("the value 0 is not supported: to keep no connections, set upstream-keepalive-connections to 0")
	}
	return nginx.Seconds(1)(value)
}

// readDrain reads a number of seconds. 0 means no limit, and is converted to the longest possible duration.
func readDrain(value string) (time.Duration, error) {
	d, err := nginx.Time(value)
	if err == nil && d == 0 {
		d = nginx.MaxSeconds * time.Second
	}
	return d, err
}

// strictValidatePathType only affects the warnings of the lint command. The controller serves existing Ingresses
// regardless of the key, as ingress-nginx does.
var strictValidatePathType = Key{
	Name: "strict-validate-path-type", Scope: process,
	Doc: "Makes `caddy k8singress lint` warn about paths with characters other than letters, digits and `-._/`, if " +
		"their pathType is Exact or Prefix. ingress-nginx rejects Ingresses with such paths; k8singress serves them.",
	Values: booleans, Example: "false", Default: "true",
	Parse: nginx.Into(func(c *Config) *bool { return &c.AnyPathType }, nginx.No),
}

// proxySSLLocationOnly only affects warnings. The annotations proxy-ssl-* apply only to the paths of their own Ingress,
// regardless of this key.
var proxySSLLocationOnly = Key{
	Name: "proxy-ssl-location-only",
	Doc: "In k8singress, the annotations proxy-ssl-* apply only to the paths of their own Ingress, whatever the " +
		"value of this key is. In ingress-nginx, the key must be `true` for that; with `false`, the annotations of " +
		"the oldest Ingress of a host also apply to the other Ingresses of the host that lack these annotations.\n\n" +
		"In k8singress, the key only controls a warning: with `false`, Events report Ingresses for which " +
		"ingress-nginx behaves differently.",
	Values: booleans, Example: "true", Default: "false",
	Parse: nginx.Into(func(c *Config) *bool { return &c.Defaults.BackendTLSByPath }, nginx.Bool),
}

// allowCrossNamespaceResources allows annotations to refer to objects in other namespaces.
var allowCrossNamespaceResources = Key{
	Name: "allow-cross-namespace-resources", Scope: process,
	Doc: "Allows annotations of an Ingress to refer to Secrets of other namespaces. Everyone who can create " +
		"Ingresses can then use every Secret.",
	Values: booleans, Example: "true", Default: "false",
	Parse: nginx.Into(func(c *Config) *bool { return &c.Defaults.CrossNamespace }, nginx.Bool),
}
