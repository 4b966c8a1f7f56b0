// Package lint finds problems in manifests that package translate does not report. They depend on the options of the
// controller, which are unknown without a Caddyfile. One example is a ConfigMap with TCP and UDP ports that no option
// opens.
package lint

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/model/settings"
	"github.com/k8singress/k8singress/internal/model/snapshot"
	"github.com/k8singress/k8singress/internal/translate/annotations"
	"github.com/k8singress/k8singress/internal/translate/ingress"
	"github.com/k8singress/k8singress/internal/translate/streams"
)

// UnopenedPorts returns a verdict (the reported status of an object) for each ConfigMap that seems to define TCP or UDP
// ports, but is not used, because neither tcp_services nor udp_services refers to it. If options is nil, because there
// is no Caddyfile, the verdicts say that the ConfigMaps were not checked.
func UnopenedPorts(s *snapshot.Snapshot, options *settings.Config) []*report.Verdict {
	var verdicts []*report.Verdict
	for c := range snapshot.Of[*corev1.ConfigMap](s).All() {
		option, seems := portOption(c)
		name := ir.Name{Namespace: c.Namespace, Name: c.Name}
		var p report.Problem
		switch {
		case !seems:
			continue
		case options == nil:
			p = report.Problem{Severity: report.Info, Reason: report.NotChecked, Message: fmt.Sprintf(
				"not checked: set --config to a Caddyfile with the option %s %s",
				cmp.Or(option, "tcp_services or udp_services"), name)}
		case len(c.Data) == 0, name == options.TCPServices, name == options.UDPServices, name == options.ConfigMap:
			continue
		default:
			p = report.Problem{Severity: report.Warning, Reason: report.ConfigMapNotReferenced,
				Message: unopened(option, name, options)}
		}
		verdicts = append(verdicts, &report.Verdict{Object: snapshot.RefOf(c), Problems: []report.Problem{p}})
	}
	return verdicts
}

// unopened returns the message for a ConfigMap whose ports are not open, because no option refers to it. The parameter
// option is the option that would open the ports, or "" if it is unknown whether they are TCP or UDP ports.
func unopened(option string, name ir.Name, options *settings.Config) string {
	var other ir.Name
	switch option {
	case "":
		return fmt.Sprintf(
			"the entries look like TCP or UDP ports, and the ports are not open, because no option names this "+
				"ConfigMap: add tcp_services %s or udp_services %s to the k8singress block of the Caddyfile", name,
			name)
	case tcpOption:
		other = options.TCPServices
	case udpOption:
		other = options.UDPServices
	}
	if !other.IsZero() {
		return fmt.Sprintf(
			"these ports are not open, because the option %s names the ConfigMap %s: move the entries to that "+
				"ConfigMap, or write %s %s instead",
			option, other, option, name)
	}
	return fmt.Sprintf(
		"these ports are not open, because no option names this ConfigMap: add %s %s to the k8singress block of the "+
			"Caddyfile", option,
		name)
}

const (
	tcpOption = "tcp_services"
	udpOption = "udp_services"
)

// portOption reports whether a ConfigMap seems to define TCP or UDP ports, judging by its name or its entries. option
// is the option that would open the ports, or "" if the name of the ConfigMap does not show which option that is.
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

// WithoutOptions is used if there is no Caddyfile, so that the options are unknown. It returns a copy of the verdicts
// in which each problem that depends on an option is replaced with a message that this was not checked.
func WithoutOptions(verdicts []*report.Verdict) []*report.Verdict {
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
					Message: "not checked: set --config to a Caddyfile with the option " + option,
				}
			}
		}
		verdicts[i] = v
	}
	return verdicts
}

// decidedBy returns the option that decides whether a problem occurs, which may be followed by a reason. It returns ""
// if the problem does not depend on an option.
func decidedBy(p report.Problem) string {
	switch {
	case p.Reason == report.AddressNotAllowed:
		return "reach_allow"
	case p.Reason == report.PortNotAllowed:
		return "service_tcp_ports or service_udp_ports"
	case p.Reason == report.AnnotationNotAllowed:
		return "configmap, because this ConfigMap says whether the annotation is allowed"
	case p.Message == ingress.PassthroughIsOff:
		return "ssl_passthrough"
	case p.Message == ingress.OnDemandIsOff:
		return "on_demand_tls"
	}
	for _, option := range []string{"chain", "stream_chain"} {
		if p.Reason == report.InvalidAnnotation && strings.HasPrefix(p.Message, annotations.MissingChain(option)) {
			return option
		}
	}
	return ""
}
