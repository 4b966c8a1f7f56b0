// Package explain describes a live configuration in readable text. For each path, it lists the handlers that process a
// request, in order, and the backend.
package explain

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/k8singress/k8singress/internal/model/document"
)

// Text returns a description of the hosts of a live configuration, one paragraph per host, sorted by name. The hosts on
// additional ports follow, sorted by listener group, then the TCP and UDP ports, and the Services that Caddy modules
// use.
func Text(d *document.Live, used Used) string {
	var b strings.Builder
	writeHosts(&b, d.Hosts, "", d)
	for _, name := range slices.Sorted(maps.Keys(d.ListenerGroups)) {
		g := d.ListenerGroups[name]
		writeHosts(&b, g.Hosts, portsOf(g), d)
	}
	writePorts(&b, d)
	used.write(&b, d)
	return b.String()
}

// portsOf describes the ports of a listener group.
func portsOf(g *document.ListenerGroup) string {
	var ports []string
	for _, l := range g.Listeners {
		ports = append(ports, fmt.Sprintf("%d (%s)", l.Port, l.Protocol))
	}
	return " on port " + strings.Join(ports, ", ")
}

// writeHosts writes the hosts of the Ingresses, or of a listener group. ports is the result of portsOf for a listener
// group, and empty for the Ingresses.
func writeHosts(b *strings.Builder, hosts map[string]*document.Host, ports string, d *document.Live) {
	for _, name := range slices.Sorted(maps.Keys(hosts)) {
		separate(b)
		writeHost(b, cmp.Or(name, "(all other hosts)")+ports, hosts[name], d)
	}
}

func writeHost(b *strings.Builder, title string, h *document.Host, d *document.Live) {
	fmt.Fprintln(b, title)
	if h.AliasOf != "" {
		fmt.Fprintf(b, "  alias of %s\n", h.AliasOf)
	}
	if h.ClientAuth != nil {
		step(b, 1, "client certificates", document.Encode(h.ClientAuth))
	}
	for _, backend := range passthroughBackends(h) {
		fmt.Fprintf(b, "  TLS passthrough to %s\n", backend)
	}
	for _, r := range h.Routes {
		writeRoute(b, r, d)
	}
	if h.HTTPSRedirect != nil {
		step(b, 1, "all other paths: redirect to HTTPS", document.Encode(h.HTTPSRedirect))
	}
}

// passthroughBackends describes the backends to which TLS connections for a host are forwarded without decryption. It
// returns nothing if the host has no TLS passthrough.
func passthroughBackends(h *document.Host) (all []string) {
	if h.Passthrough != "" {
		all = append(all, h.Passthrough)
	}
	for _, s := range h.PassthroughSplit {
		all = append(all, fmt.Sprintf("%s, weight %d", s.Backend, s.Weight))
	}
	return all
}

func writeRoute(b *strings.Builder, r *document.Route, d *document.Live) {
	fmt.Fprintf(b, "  %s %s  (%s)\n", r.Type, r.Path, r.Origin)
	if r.Match != nil {
		step(b, 2, "if", document.Encode(r.Match))
	}
	if r.HTTPSRedirect != nil {
		step(b, 2, "redirect to HTTPS", document.Encode(r.HTTPSRedirect))
	}
	if len(r.Split) == 0 {
		writeDestination(b, 2, &r.Destination, d)
	}
	for _, s := range r.Split {
		fmt.Fprintf(b, "    weight %d%s\n", s.Weight, fallbackNote(s))
		writeDestination(b, 3, &s.Destination, d)
	}
	if r.ErrorPages != nil {
		step(b, 2, "error pages", document.Encode(r.ErrorPages))
	}
}

func writeDestination(b *strings.Builder, depth int, to *document.Destination, d *document.Live) {
	if to.Refused != "" {
		fmt.Fprintf(b, "%s503: %s\n", indent(depth), to.Refused)
		return
	}
	for _, handler := range handlers(to.Chain) {
		writeHandler(b, depth, handler)
		if respondsAlways(handler) {
			return
		}
	}
	if to.TLS != nil {
		step(b, depth, "TLS to the endpoints", document.Encode(to.TLS))
	}
	// The paths of servers in http-snippet have no Service.
	if to.Backend != "" && !strings.HasSuffix(to.Backend, "//") {
		fmt.Fprintf(b, "%sto %s%s\n", indent(depth), to.Backend, endpoints(d.Backends[to.Backend]))
	}
}

// respondsAlways reports whether a handler responds to all requests, so that the rest of the chain and the backend get
// none.
func respondsAlways(handler json.RawMessage) bool {
	var of struct {
		Name string `json:"handler"`
	}
	return json.Unmarshal(handler, &of) == nil &&
		(of.Name == ownPrefix+"direct_response" || of.Name == ownPrefix+"stub_status")
}

func fallbackNote(s *document.Share) string {
	if s.Fallback {
		return ", and requests whose backend has no endpoint"
	}
	return ""
}

// endpoints returns a description of the endpoints of a backend: how many there are, or the external name.
func endpoints(of *document.Backend) string {
	switch {
	case of == nil:
		return ""
	case of.ExternalName != "":
		return ", at " + of.ExternalName
	case len(of.Endpoints) == 1:
		return ", 1 endpoint"
	}
	return fmt.Sprintf(", %d endpoints", len(of.Endpoints))
}

// handlers returns the JSON of each handler in a handler chain, in order. Handlers inside a subroute are not listed
// separately.
func handlers(chain json.RawMessage) (all []json.RawMessage) {
	var routes []struct {
		Handle []json.RawMessage `json:"handle"`
	}
	if json.Unmarshal(chain, &routes) != nil {
		return nil // An empty chain is not valid JSON.
	}
	for _, r := range routes {
		all = append(all, r.Handle...)
	}
	return all
}

// ownPrefix is the prefix of the module names of our handlers. It is omitted in the description.
const ownPrefix = "k8singress_"

// anyOfName is the name of the handler that accepts a request if one of its filters accepts the request.
const anyOfName = "k8singress_any_of"

// programName is the key of the settings of a handler that contains a program of a snippet. With ownPrefix, it is the
// name of the handler that only runs a program.
const programName = "program"

// writeHandler writes the readable name of a handler and its settings. The settings are nginx directives if the handler
// comes from a snippet, and JSON otherwise. The filters of the handler anyOfName, and the program of external
// authentication, are written below it.
func writeHandler(b *strings.Builder, depth int, handler json.RawMessage) {
	var name string
	fields := map[string]json.RawMessage{}
	if json.Unmarshal(handler, &fields) != nil || json.Unmarshal(fields["handler"], &name) != nil {
		step(b, depth, string(handler), nil)
		return
	}
	delete(fields, "handler")
	title := readableName(name, fields)
	settings := document.Encode(fields)
	var anyOf document.AnyOf
	if name == anyOfName && json.Unmarshal(settings, &anyOf) == nil {
		step(b, depth, title, nil)
		for _, one := range anyOf.Filters {
			writeHandler(b, depth+1, one)
		}
		return
	}
	if write := inNginxWords[name]; write != nil {
		text := nginxText{depth: depth + 1}
		if write(&text, settings) == nil {
			step(b, depth, title, nil)
			b.WriteString(text.String())
			return
		}
	}
	program := nginxText{depth: depth + 1}
	if raw := fields[programName]; raw != nil && printing((*nginxText).program)(&program, raw) == nil {
		delete(fields, programName)
		settings = document.Encode(fields)
	}
	step(b, depth, title, withDurations(settings))
	b.WriteString(program.String())
}

// withDurations returns the settings of a handler with durations such as "1m30s" in place of nanoseconds.
func withDurations(settings json.RawMessage) json.RawMessage {
	decoder := json.NewDecoder(bytes.NewReader(settings))
	decoder.UseNumber()
	var fields any
	if decoder.Decode(&fields) != nil {
		return settings
	}
	return document.Encode(readable("", fields))
}

// readable returns a decoded JSON value with durations in place of nanoseconds. name is the name of the field, which
// tells durations from other numbers.
func readable(name string, value any) any {
	switch of := value.(type) {
	case map[string]any:
		for name := range of {
			of[name] = readable(name, of[name])
		}
	case []any:
		for i := range of {
			of[i] = readable(name, of[i])
		}
	case json.Number:
		if n, err := of.Int64(); err == nil && (strings.HasSuffix(name, "_timeout") || name == "for") {
			return time.Duration(n).String()
		}
	}
	return value
}

// readableName returns the name of a handler as the order of filters in docs/annotations.md has it.
func readableName(name string, fields map[string]json.RawMessage) string {
	switch {
	case name != ownPrefix+programName:
		return strings.ReplaceAll(strings.TrimPrefix(name, ownPrefix), "_", " ")
	case fields["server"] != nil:
		return "server snippets"
	}
	return "snippets"
}

// step writes the line that describes one handler, with the handler's settings if there are any.
func step(b *strings.Builder, depth int, name string, settings json.RawMessage) {
	line := indent(depth) + name
	if len(settings) > 0 && !bytes.Equal(settings, []byte("{}")) {
		line += " " + string(settings)
	}
	fmt.Fprintln(b, line)
}

func indent(depth int) string { return strings.Repeat("  ", depth) }
