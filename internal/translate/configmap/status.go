package configmap

import "github.com/k8singress/k8singress/internal/model/nginx"

const statusDoc = "Other clients get 403. If this list is invalid, no client of this IP version may read the page. " +
	"If use-forwarded-headers trusts all clients, any client can claim an address in the list.\n\n" +
	"The page shows the numbers of connections and requests in the format of nginx. It is served on the HTTP and " +
	"HTTPS ports for hosts that are not in any Ingress."

// The ConfigMap keys that list the clients that may read the status page.
var (
	nginxStatusIPv4 = Key{
		Name: "nginx-status-ipv4-whitelist", Scope: process,
		Doc:    "The IPv4 clients that may read the page `/nginx_status`. " + statusDoc,
		Values: "comma-separated networks and addresses", Example: "127.0.0.1,10.0.0.0/8",
		Default: "127.0.0.1",
		Parse:   nginx.Into(func(c *Config) *[]string { return &c.Global.Status.IPv4 }, readStatusReaders), Lines: true,
	}
	nginxStatusIPv6 = Key{
		Name: "nginx-status-ipv6-whitelist", Scope: process,
		Doc:    "The IPv6 clients that may read the page `/nginx_status`. " + statusDoc,
		Values: "comma-separated networks and addresses", Example: "::1,fd00::/8", Default: "::1",
		Parse: nginx.Into(func(c *Config) *[]string { return &c.Global.Status.IPv6 }, readStatusReaders), Lines: true,
	}
)

// readStatusReaders reads a list of networks whose clients may read the status page. If the list is invalid, no client
// may read the page.
func readStatusReaders(value string) ([]string, error) {
	networks, err := nginx.AllNetworks(value)
	if err != nil {
		return []string{nginx.Nowhere}, nginx.Partial("no client may read the status page, because the list is " +
			"invalid: " +
			err.Error())
	}
	return networks, nil
}
