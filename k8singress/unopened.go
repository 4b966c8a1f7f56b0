package k8singress

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/k8singress/k8singress/internal/ingress"
	"github.com/k8singress/k8singress/internal/report"
	"github.com/k8singress/k8singress/internal/settings"
	"github.com/k8singress/k8singress/internal/snapshot"
	"github.com/k8singress/k8singress/internal/streams"
)

// unopened are verdicts on the ConfigMaps that seem to be of TCP or UDP ports, and that no option names: nothing else would
// say that their ports are closed. Without a configuration nobody knows which ones are named.
func (o *offline) unopened(s *snapshot.Snapshot, named *settings.Config) []*report.Verdict {
	var verdicts []*report.Verdict
	for c := range snapshot.Of[*corev1.ConfigMap](s).All() {
		option, seems := portOption(c)
		name := c.Namespace + "/" + c.Name
		var p report.Problem
		switch {
		case !seems:
			continue
		case o.config == "":
			p = report.Problem{Severity: report.Info, Reason: report.NotChecked, Message: fmt.Sprintf(
				"not checked: give the Caddyfile, with %s %s in it, with --config", cmp.Or(option, "tcp_services or udp_services"), name)}
		case len(c.Data) == 0, name == named.TCPServices, name == named.UDPServices, name == named.ConfigMap:
			continue
		default:
			p = report.Problem{Severity: report.Warning, Reason: report.ConfigMapNotReferenced, Message: notNamed(option, name, named)}
		}
		verdicts = append(verdicts, &report.Verdict{Object: snapshot.RefOf(c), Problems: []report.Problem{p}})
	}
	return verdicts
}

// notNamed says why the ports of a ConfigMap are closed, and what opens them. option may be empty.
func notNamed(option, name string, named *settings.Config) string {
	other := ""
	switch option {
	case "":
		return fmt.Sprintf("its entries look like TCP or UDP ports, and nothing opens them: no option names this ConfigMap. Write tcp_services %s "+
			"or udp_services %s into the block of k8singress", name, name)
	case tcpOption:
		other = named.TCPServices
	case udpOption:
		other = named.UDPServices
	}
	if other != "" {
		return fmt.Sprintf("nothing opens these ports: %s names %s. Put the entries there, or write %s %s in its place", option, other, option, name)
	}
	return fmt.Sprintf("nothing opens these ports: no option names this ConfigMap. Write %s %s into the block of k8singress", option, name)
}

const (
	tcpOption = "tcp_services"
	udpOption = "udp_services"
)

// portOption says whether a ConfigMap seems to be of ports, by the name that ingress-nginx has for it or by an entry, and which
// option is for it. The option is empty if that is not to be seen.
func portOption(c *corev1.ConfigMap) (option string, seems bool) {
	switch c.Name {
	case "tcp-services":
		return tcpOption, true
	case "udp-services":
		return udpOption, true
	}
	for key, value := range c.Data {
		if !streams.IsEntry(key, value) {
			continue
		}
		switch {
		case strings.Contains(c.Name, "udp"):
			return udpOption, true
		case strings.Contains(c.Name, "tcp"):
			return tcpOption, true
		}
		return "", true
	}
	return "", false
}

// unasked takes back what is said only because an option is not set: without a configuration nobody knows whether it is.
func (o *offline) unasked(verdicts []*report.Verdict) []*report.Verdict {
	if o.config != "" {
		return verdicts
	}
	verdicts = slices.Clone(verdicts)
	for i, v := range verdicts {
		if !slices.ContainsFunc(v.Problems, func(p report.Problem) bool { return decidedBy(p) != "" }) {
			continue
		}
		v = &report.Verdict{Object: v.Object, Parents: v.Parents, Problems: slices.Clone(v.Problems)}
		for j, p := range v.Problems {
			if option := decidedBy(p); option != "" {
				v.Problems[j] = report.Problem{
					Severity: report.Info, Reason: report.NotChecked, Field: p.Field,
					Message: "not checked: give the Caddyfile, with " + option + " in it, with --config",
				}
			}
		}
		verdicts[i] = v
	}
	return verdicts
}

// decidedBy names the option that decides whether there is such a problem; it is empty for what is so with all options.
func decidedBy(p report.Problem) string {
	switch {
	case p.Reason == report.PortNotAllowed:
		return "service_tcp_ports or service_udp_ports"
	case p.Message == ingress.PassthroughIsOff:
		return "ssl_passthrough"
	}
	return ""
}
