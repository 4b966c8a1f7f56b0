package configmap

import (
	"strconv"

	"github.com/k8singress/k8singress/internal/model/nginx"
)

// The ConfigMap keys for the redirect to HTTPS. Keys that set the default of an annotation with the same name are not
// listed here.
var (
	httpRedirectCode = Key{
		Name:   "http-redirect-code",
		Doc:    "The status code of the redirect from HTTP to HTTPS.",
		Values: "301, 302, 307 or 308", Example: "301", Default: "308",
		Parse: nginx.Into(func(c *Config) *int { return &c.Defaults.Redirect.Status }, readRedirectCode),
	}
	noTLSRedirectLocations = Key{
		Name: "no-tls-redirect-locations",
		Doc: "Paths that are not redirected to HTTPS, even with force-ssl-redirect. A path of an Ingress is exempt " +
			"if it equals one of these paths or is below it. Use this key for clients that can only use HTTP, such " +
			"as a certificate authority that verifies an HTTP-01 challenge.",
		Values: "comma-separated paths", Example: "/.well-known/acme-challenge,/plain",
		Default: "/.well-known/acme-challenge",
		Parse:   nginx.Into(func(c *Config) *[]string { return &c.Defaults.Redirect.Exempt }, nginx.Locations),
		Lines:   true,
	}
)

func readRedirectCode(value string) (int, error) {
	if _, err := nginx.OneOf("301", "302", "307", "308")(value); err != nil {
		return 0, err
	}
	return strconv.Atoi(value)
}
