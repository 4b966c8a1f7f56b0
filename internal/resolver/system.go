package resolver

import (
	"bytes"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"
)

// systemFiles are where the system says how names are looked up.
type systemFiles struct{ resolvConf, hosts string }

var theSystem = systemFiles{resolvConf: "/etc/resolv.conf", hosts: "/etc/hosts"}

// The limits of resolv.conf(5).
const (
	mostTimeout  = 30
	mostAttempts = 5
)

// newClient makes a client of what the files say now. A file that cannot be read counts as an empty one, as it does
// for every other resolver.
func newClient(servers []string, files systemFiles) *client {
	text, _ := os.ReadFile(files.resolvConf)
	config, err := dns.ClientConfigFromReader(bytes.NewReader(text))
	if err != nil {
		config = &dns.ClientConfig{Ndots: 1, Timeout: 5, Attempts: 2}
	}
	c := &client{
		search: config.Search, ndots: config.Ndots, rotate: rotates(string(text)),
		timeout: time.Duration(min(config.Timeout, mostTimeout)) * time.Second, attempts: min(config.Attempts, mostAttempts),
		hosts: map[string][]netip.Addr{},
	}
	switch {
	case len(servers) > 0:
	case len(config.Servers) > 0:
		servers = config.Servers
	default:
		servers = []string{"127.0.0.1", "::1"}
	}
	for _, s := range servers {
		c.servers = append(c.servers, withPort(s))
	}
	if text, err := os.ReadFile(files.hosts); err == nil {
		readHosts(string(text), c.hosts)
	}
	return c
}

// withPort adds the port of the DNS to an address that has none.
func withPort(server string) string {
	if _, _, err := net.SplitHostPort(server); err == nil {
		return server
	}
	return net.JoinHostPort(strings.Trim(server, "[]"), "53")
}

// rotates says whether the option is there, which package dns does not read.
func rotates(resolvConf string) bool {
	for line := range strings.Lines(resolvConf) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "options" && slices.Contains(fields[1:], "rotate") {
			return true
		}
	}
	return false
}

// readHosts reads lines of an address and its names. That is where Kubernetes writes the hostAliases of a pod.
func readHosts(text string, into map[string][]netip.Addr) {
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		address, err := netip.ParseAddr(fields[0])
		if err != nil || address.Zone() != "" {
			continue
		}
		for _, host := range fields[1:] {
			host = strings.ToLower(strings.TrimSuffix(host, "."))
			into[host] = append(into[host], address.Unmap())
		}
	}
}
