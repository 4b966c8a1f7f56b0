// Package streams turns the tcp-services and udp-services ConfigMaps of ingress-nginx into the model. It is pure.
package streams

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/k8singress/k8singress/internal/ingress"
	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/kinds"
	"github.com/k8singress/k8singress/internal/report"
	"github.com/k8singress/k8singress/internal/snapshot"
)

// Options name the ConfigMaps.
type Options struct {
	// TCP and UDP are "namespace/name", or empty.
	TCP, UDP string
	// Reserved are the ports that the process itself listens on. In one process, Caddy shares a port among its listeners
	// without an error.
	Reserved []ReservedPort
}

// ReservedPort is one port that no entry may have.
type ReservedPort struct {
	Protocol ir.Protocol
	Port     uint16
	// Owner is what listens there, for messages.
	Owner string
}

// Result is what the ConfigMaps ask for.
type Result struct {
	// Routes are sorted by protocol and port.
	Routes   []*ir.StreamRoute
	Verdicts []*report.Verdict
	// Refs are the objects that the result depends on.
	Refs []ir.Ref
}

// Translate reads both ConfigMaps. One that does not exist has no entries.
func Translate(s *snapshot.Snapshot, o Options) *Result {
	r := &reading{snapshot: s, options: o, result: &Result{}}
	r.configMap(o.TCP, ir.TCP)
	r.configMap(o.UDP, ir.UDP)
	slices.SortFunc(r.result.Routes, func(a, b *ir.StreamRoute) int {
		return cmp.Or(cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Port, b.Port))
	})
	return r.result
}

type reading struct {
	snapshot *snapshot.Snapshot
	options  Options
	result   *Result
}

func (r *reading) configMap(name string, protocol ir.Protocol) {
	namespace, name, ok := strings.Cut(name, "/")
	if !ok {
		return
	}
	ref := ir.Ref{Kind: kinds.ConfigMap, Namespace: namespace, Name: name}
	r.result.Refs = append(r.result.Refs, ref)
	object, ok := r.snapshot.ConfigMaps.Get(namespace, name)
	if !ok {
		return
	}
	verdict := &report.Verdict{Object: ref}
	used := map[uint16]bool{}
	for _, key := range slices.Sorted(maps.Keys(object.Data)) {
		route, p := r.entry(key, object.Data[key], protocol)
		if p == nil && used[route.Port] {
			p = invalid("port %d is there twice, and the first entry counts", route.Port)
		}
		if p != nil {
			p.Field = "data[" + key + "]"
			verdict.Problems = append(verdict.Problems, *p)
		}
		if route != nil && !used[route.Port] {
			used[route.Port] = true
			route.Origin = ref
			r.result.Routes = append(r.result.Routes, route)
		}
	}
	r.result.Verdicts = append(r.result.Verdicts, verdict)
}

// entry reads "namespace/service:port[:PROXY][:PROXY]": the first PROXY says that clients send a PROXY protocol header,
// the second that the backend gets one. A route and a problem may come together: a Service that is missing may appear.
func (r *reading) entry(key, value string, protocol ir.Protocol) (*ir.StreamRoute, *report.Problem) {
	number, err := strconv.ParseUint(key, 10, 16)
	if err != nil || number == 0 {
		return nil, invalid("%q is no port: the key is a number from 1 to 65535", key)
	}
	port := uint16(number)
	if owner := r.reserved(protocol, port); owner != "" {
		return nil, &report.Problem{
			Severity: report.Error, Reason: report.PortConflict,
			Message: fmt.Sprintf("port %d is the %s port of the controller itself: choose another one", port, owner),
		}
	}
	parts := strings.Split(value, ":")
	namespace, service, ok := strings.Cut(parts[0], "/")
	if len(parts) < 2 || len(parts) > 4 || !ok || namespace == "" || service == "" || parts[1] == "" {
		return nil, invalid("%q is no entry: write namespace/service:port", value)
	}
	route := &ir.StreamRoute{Protocol: protocol, Port: port}
	for i, flag := range parts[2:] {
		switch {
		case flag == "":
		case !strings.EqualFold(flag, "PROXY"):
			return nil, invalid("%q is unknown: PROXY is what may stand there", flag)
		case protocol == ir.UDP:
			return nil, invalid("the PROXY protocol is for TCP ports only")
		case i == 0:
			route.AcceptProxy = true
		default:
			route.SendProxy = true
		}
	}
	backend, p := r.backend(ir.Ref{Kind: kinds.Service, Namespace: namespace, Name: service}, parts[1], protocol)
	route.Backend = backend
	return route, p
}

func (r *reading) reserved(protocol ir.Protocol, port uint16) string {
	for _, p := range r.options.Reserved {
		if p.Protocol == protocol && p.Port == port {
			return p.Owner
		}
	}
	return ""
}

func (r *reading) backend(ref ir.Ref, wanted string, protocol ir.Protocol) (*ir.Backend, *report.Problem) {
	r.result.Refs = append(r.result.Refs, ref)
	b := &ir.Backend{Namespace: ref.Namespace, Service: ref.Name, Protocol: protocol, Missing: true}
	b.ID = ref.Namespace + "/" + ref.Name + "/" + wanted
	if protocol == ir.UDP {
		b.ID += "/udp"
	}
	service, ok := r.snapshot.Services.Get(ref.Namespace, ref.Name)
	if !ok {
		return b, &report.Problem{
			Severity: report.Error, Reason: report.NoService,
			Message: fmt.Sprintf("there is no Service %s/%s: connections are closed until there is one", ref.Namespace, ref.Name),
		}
	}
	port := ingress.FindPort(service, wanted, corev1.Protocol(strings.ToUpper(string(protocol))))
	if port == nil || service.Spec.Type == corev1.ServiceTypeExternalName {
		return b, &report.Problem{
			Severity: report.Error, Reason: report.InvalidBackend,
			Message: fmt.Sprintf("the Service %s/%s has no %s port %s: connections are closed", ref.Namespace, ref.Name,
				strings.ToUpper(string(protocol)), wanted),
		}
	}
	b.ID = strings.Replace(b.ID, "/"+wanted, "/"+strconv.Itoa(int(port.Port)), 1)
	b.PortName, b.Missing = port.Name, false
	return b, nil
}

func invalid(message string, args ...any) *report.Problem {
	return &report.Problem{Severity: report.Error, Reason: report.InvalidEntry, Message: fmt.Sprintf(message, args...)}
}
