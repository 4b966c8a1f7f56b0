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

// systemFiles holds the paths of the system's resolv.conf and hosts files.
type systemFiles struct{ resolvConf, hosts string }

var theSystem = systemFiles{resolvConf: "/etc/resolv.conf", hosts: "/etc/hosts"}

// The upper limits that resolv.conf(5) documents for its options.
const (
	maxTimeout  = 30
	maxAttempts = 5
)

// newClient returns a client for the current contents of resolv.conf and the hosts file. As in other resolvers, a file
// that cannot be read counts as empty. If servers is not empty, these DNS servers are used in place of the servers in
// resolv.conf.
func newClient(servers []string, files systemFiles) *client {
	text, _ := os.ReadFile(files.resolvConf)
	config, err := dns.ClientConfigFromReader(bytes.NewReader(text))
	if err != nil {
		config = &dns.ClientConfig{Ndots: 1, Timeout: 5, Attempts: 2}
	}
	c := &client{
		search: config.Search, ndots: config.Ndots, rotate: rotates(string(text)),
		timeout:  time.Duration(min(config.Timeout, maxTimeout)) * time.Second,
		attempts: min(config.Attempts, maxAttempts),
		hosts:    map[string][]netip.Addr{},
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

// withPort adds the port 53 to an address that has no port.
func withPort(server string) string {
	if _, _, err := net.SplitHostPort(server); err == nil {
		return server
	}
	return net.JoinHostPort(strings.Trim(server, "[]"), "53")
}

// rotates reports whether resolv.conf contains the option "rotate", which package dns does not parse.
func rotates(resolvConf string) bool {
	for line := range strings.Lines(resolvConf) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "options" &&
			slices.Contains(fields[1:], "rotate") {
			return true
		}
	}
	return false
}

// readHosts parses the text of a hosts file and adds the addresses of each name to the map into. In a pod, the hosts
// file contains the pod's hostAliases.
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
