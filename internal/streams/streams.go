// Package streams turns the tcp-services and udp-services ConfigMaps of ingress-nginx into the model. It is pure.
package streams

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/k8singress/k8singress/internal/backends"
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
	// ExternalNames is that of settings.Config.
	ExternalNames string
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

// Translate reads both ConfigMaps. One that does not exist has no entries, and a verdict all the same.
func Translate(s *snapshot.Snapshot, o Options) *Result {
	r := &reading{snapshot: s, options: o, result: &Result{}}
	r.read = r.entry
	return r.translate()
}

func (r *reading) translate() *Result {
	r.configMap(r.options.TCP, "tcp_services", ir.TCP)
	r.configMap(r.options.UDP, "udp_services", ir.UDP)
	slices.SortFunc(r.result.Routes, func(a, b *ir.StreamRoute) int {
		return cmp.Or(cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Port, b.Port))
	})
	return r.result
}

type reading struct {
	snapshot *snapshot.Snapshot
	options  Options
	result   *Result
	// read reads one entry.
	read func(key, value string, protocol ir.Protocol) (*ir.StreamRoute, *report.Problem)
}

// configMap reads the ConfigMap that an option names.
func (r *reading) configMap(name, option string, protocol ir.Protocol) {
	namespace, name, ok := strings.Cut(name, "/")
	if !ok {
		return
	}
	ref := ir.Ref{Kind: kinds.ConfigMap, Namespace: namespace, Name: name}
	r.result.Refs = append(r.result.Refs, ref)
	verdict := r.verdict(ref)
	object, ok := r.snapshot.ConfigMaps.Get(namespace, name)
	if !ok {
		verdict.Problems = append(verdict.Problems, missing(namespace+"/"+name, option, protocol))
		return
	}
	used := map[uint16]bool{}
	for _, key := range slices.SortedFunc(maps.Keys(object.Data), byNumber) {
		route, p := r.carefully(key, object.Data[key], protocol)
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
}

// verdict returns the one on a ConfigMap. Both options may name the same.
func (r *reading) verdict(ref ir.Ref) *report.Verdict {
	for _, v := range r.result.Verdicts {
		if v.Object == ref {
			return v
		}
	}
	v := &report.Verdict{Object: ref}
	r.result.Verdicts = append(r.result.Verdicts, v)
	return v
}

func missing(name, option string, protocol ir.Protocol) report.Problem {
	return report.Problem{
		Severity: report.Warning, Reason: report.NoConfigMap,
		Message: fmt.Sprintf("there is no ConfigMap %s, which %s names: no %s ports are open until there is one",
			name, option, strings.ToUpper(string(protocol))),
	}
}

// byNumber puts a port before the same one with zeros in front, so that such an entry takes nothing from a good one.
func byNumber(a, b string) int {
	return cmp.Or(cmp.Compare(strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")), cmp.Compare(len(a), len(b)))
}

// carefully makes a panic a problem of the entry that causes it.
func (r *reading) carefully(key, value string, protocol ir.Protocol) (route *ir.StreamRoute, p *report.Problem) {
	defer func() {
		if fault := recover(); fault != nil {
			route, p = nil, &report.Problem{
				Severity: report.Error, Reason: report.Quarantined,
				Message: fmt.Sprintf("the entry is left out, because reading it fails: %v", fault),
			}
		}
	}()
	return r.read(key, value, protocol)
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
	if len(parts) < 2 || len(parts) > 4 {
		return nil, invalid("%q is no entry: write namespace/service:port", value)
	}
	namespace, service, _ := strings.Cut(parts[0], "/")
	if !named(namespace, service, parts[1]) {
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
			route.SendProxy = ir.ProxyV1
		}
	}
	backend, p := r.backend(ir.Ref{Kind: kinds.Service, Namespace: namespace, Name: service}, parts[1], protocol)
	route.Backend = backend
	return route, p
}

// named says whether these could be a namespace, a Service in it and its port. Nobody checks a ConfigMap before, and the
// names become the ID of a backend, which must not be another one's.
func named(namespace, service, port string) bool {
	return len(validation.IsDNS1123Label(namespace)) == 0 && len(validation.IsDNS1123Subdomain(service)) == 0 &&
		len(validation.IsDNS1123Label(port)) == 0
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
	found, p := backends.Find(r.snapshot, ref, wanted, protocol, backends.Options{ExternalNames: r.options.ExternalNames})
	switch {
	case p == nil:
		return found, nil
	case p.Reason == report.NoService:
		p.Message += ": connections are closed until there is one"
	default:
		p.Message += ": connections are closed"
	}
	p.Field = ""
	return found, p
}

func invalid(message string, args ...any) *report.Problem {
	return &report.Problem{Severity: report.Error, Reason: report.InvalidEntry, Message: fmt.Sprintf(message, args...)}
}
