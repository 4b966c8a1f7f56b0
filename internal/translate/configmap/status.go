package configmap

import "github.com/k8singress/k8singress/internal/model/nginx"

const statusDoc = "That page has nginx's numbers of connections and requests. It is there for hosts that no Ingress " +
	"names, on the ports of HTTP and HTTPS; other clients get 403. While this list cannot be read, it lets no " +
	"client in; the other list still counts. Where use-forwarded-headers believes everybody, any client can pass " +
	"for one of the list."

// The keys for the clients that may read the status page.
var (
	nginxStatusIPv4 = Key{
		Name: "nginx-status-ipv4-whitelist", Scope: process,
		Doc:    "The IPv4 clients that may read `/nginx_status`. " + statusDoc,
		Values: "networks and addresses, with commas between them", Example: "127.0.0.1,10.0.0.0/8",
		Default: "127.0.0.1",
		Parse:   nginx.Into(func(c *Config) *[]string { return &c.Global.Status.IPv4 }, readStatusReaders), Lines: true,
	}
	nginxStatusIPv6 = Key{
		Name: "nginx-status-ipv6-whitelist", Scope: process,
		Doc:    "The IPv6 clients that may read `/nginx_status`. " + statusDoc,
		Values: "networks and addresses, with commas between them", Example: "::1,fd00::/8", Default: "::1",
		Parse: nginx.Into(func(c *Config) *[]string { return &c.Global.Status.IPv6 }, readStatusReaders), Lines: true,
	}
)

// readStatusReaders reads a list of networks. An invalid list allows no client, instead of the clients in the default.
func readStatusReaders(value string) ([]string, error) {
	networks, err := nginx.AllNetworks(value)
	if err != nil {
		return []string{nginx.Nowhere}, nginx.Partial("this list lets no client read the status: " + err.Error())
	}
	return networks, nil
}
