package backends

import (
	"net"
	"net/netip"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/model/settings"
)

// The function external returns the backend for a Service of type ExternalName. The author of such a Service chooses
// the address to which this process connects. So addresses of the controller itself and of its local network, such as
// loopback and link-local addresses, are rejected. The code that resolves the name must also reject such addresses in
// DNS responses.
func external(b *ir.Backend, service *corev1.Service, port string, o Options) (*ir.Backend, *report.Problem) {
	name := service.Namespace + "/" + service.Name
	anywhere := o.ExternalNames == settings.ExternalNamesAll
	if !anywhere && o.ExternalNames != "" {
		return b, problem(report.InvalidBackend, "name",
			"the Service %s is of type ExternalName, which the administrator disabled with the option external_names",
			name)
	}
	host, fault := externalHost(service.Spec.ExternalName, anywhere)
	if fault != "" {
		return b, problem(report.InvalidBackend, "name",
			"the externalName %[2]q of the Service %[1]s %[3]s", name, service.Spec.ExternalName, fault)
	}
	number, target := externalPort(service, port, b.Protocol)
	if number == 0 {
		return b, problem(report.InvalidBackend, "port",
			"the Service %s of type ExternalName has no port %s: write the name of one of its ports, or a number", name,
			port)
	}
	b.ID = ID(ir.Ref{Namespace: service.Namespace, Name: service.Name}, strconv.Itoa(number), b.Protocol)
	b.ExternalName, b.Missing = net.JoinHostPort(host, strconv.Itoa(target)), false
	b.LoadBalancing.ClientIP = clientIP(service)
	return b, nil
}

// externalHost checks the externalName of a Service and returns it as a lower-case name or an IP address. If the
// externalName is not allowed, fault is the reason; otherwise fault is empty. If anywhere is true, addresses of the
// controller itself are allowed.
func externalHost(text string, anywhere bool) (host, fault string) {
	if ip, err := netip.ParseAddr(text); err == nil {
		if near(ip.Unmap()) && !anywhere {
			return "",
				"is not allowed, because it is an address of the controller itself or of its local network (the " +
					"option \"external_names all\" allows it)"
		}
		return ip.Unmap().String(), ""
	}
	host = strings.ToLower(strings.TrimSuffix(text, "."))
	switch {
	case len(validation.IsDNS1123Subdomain(host)) > 0 || numeric(host):
		return "", "is neither a DNS name nor an IP address"
	case !anywhere && (host == "localhost" || strings.HasSuffix(host, ".localhost")):
		return "",
			"is not allowed, because it is a name of the controller itself (the option \"external_names all\" " +
				"allows it)"
	}
	return host, ""
}

// The function near reports whether an address has a different meaning on each host, such as a loopback address or the
// link-local address of a cloud's metadata service.
func near(ip netip.Addr) bool {
	return ip.IsLoopback() || ip.IsUnspecified() || ip.IsLinkLocalUnicast() || ip.IsMulticast() || ip.Zone() != ""
}

// The function numeric reports whether some resolvers interpret a name as an IP address, such as 127.1 or 0x7f000001.
// No real domain name ends with a number.
func numeric(host string) bool {
	last := host[strings.LastIndexByte(host, '.')+1:]
	_, err := strconv.ParseUint(last, 0, 64)
	return err == nil || strings.Trim(last, "0123456789") == ""
}

// externalPort returns the number of the Service port that wanted selects, and the target port to connect to. If the
// Service port has no numeric target port, target is equal to number. As in ingress-nginx, wanted may also be a port
// number that the Service does not list. Both results are zero if there is no valid port.
func externalPort(service *corev1.Service, wanted string, protocol ir.Protocol) (number, target int) {
	if found := findPort(service, wanted, corev1.Protocol(strings.ToUpper(string(protocol)))); found != nil {
		number, target = int(found.Port), int(found.Port)
		if t := found.TargetPort.IntValue(); t > 0 {
			target = t
		}
	} else if n, err := strconv.ParseUint(wanted, 10, 16); err == nil {
		number, target = int(n), int(n)
	}
	if number >= 1<<16 || target >= 1<<16 {
		return 0, 0
	}
	return number, target
}
