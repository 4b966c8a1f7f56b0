package explain

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/k8singress/k8singress/internal/control/structure"
	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/ir"
)

// writePorts writes the TCP and UDP ports, sorted by name. The description of each port is a paragraph.
func writePorts(b *strings.Builder, d *document.Live) {
	for _, name := range slices.Sorted(maps.Keys(d.Ports)) {
		separate(b)
		writePort(b, name, d.Ports[name], d)
	}
}

func writePort(b *strings.Builder, name string, p *document.Port, d *document.Live) {
	protocol, number, _ := strings.Cut(name, "/")
	fmt.Fprintf(b, "%s port %s  (%s)\n", strings.ToUpper(protocol), number, p.Origin)
	var server struct {
		Routes json.RawMessage `json:"routes"`
	}
	_ = json.Unmarshal(p.Server, &server) // Without routes, only the backends are listed.
	for _, handler := range handlers(server.Routes) {
		if handler = withoutBackends(handler); handler != nil {
			writeHandler(b, 1, handler)
		}
	}
	if p.Backend != "" {
		fmt.Fprintf(b, "  to %s%s\n", p.Backend, endpoints(d.Backends[p.Backend]))
	}
	for i := range p.Split {
		s := &p.Split[i]
		fallback := ""
		if s.Fallback {
			fallback = ", and connections whose backend has no endpoint"
		}
		fmt.Fprintf(b, "  weight %d%s\n    to %s%s\n", s.Weight, fallback, s.Backend, endpoints(d.Backends[s.Backend]))
	}
}

// withoutBackends returns the settings of a handler of a port without its backends, which are listed separately. The
// handler that forwards connections to them has no prefix, so it gets the name "forward". The result is nil if that
// handler has no other settings.
func withoutBackends(handler json.RawMessage) json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal(handler, &fields) != nil || string(fields["handler"]) != `"k8singress"` {
		return handler
	}
	delete(fields, "backend")
	delete(fields, "split")
	if len(fields) == 1 {
		return nil
	}
	fields["handler"] = json.RawMessage(`"` + ownPrefix + `forward"`)
	return document.Encode(fields)
}

// Used holds the Services that the administrator's configuration of Caddy uses, although no Kubernetes object refers to
// them.
type Used struct {
	// Uses lists where the Services are used, in the order of the configuration.
	Uses []structure.Use
	// Backends are the backends of the Services, sorted.
	Backends []ir.FollowedBackend
}

// write writes, for each part of the configuration, the backends that it uses.
func (u Used) write(b *strings.Builder, d *document.Live) {
	before := ""
	for _, use := range u.Uses {
		if use.By != before {
			separate(b)
			fmt.Fprintln(b, use.By)
			before = use.By
		}
		i, found := slices.BinarySearchFunc(u.Backends, use.FollowedPort,
			func(f ir.FollowedBackend, p ir.FollowedPort) int { return f.Compare(p) })
		depth := 1
		for _, match := range use.Match {
			fmt.Fprintf(b, "%sif %s\n", indent(depth), match)
			depth++
		}
		switch {
		case !found:
		case u.Backends[i].Problem != "":
			fmt.Fprintf(b, "%sto %s: %s\n", indent(depth), use, u.Backends[i].Problem)
		default:
			id := u.Backends[i].Backend.ID
			fmt.Fprintf(b, "%sto %s%s\n", indent(depth), id, endpoints(d.Backends[id]))
		}
	}
}

// separate writes an empty line between two paragraphs.
func separate(b *strings.Builder) {
	if b.Len() > 0 {
		b.WriteByte('\n')
	}
}
