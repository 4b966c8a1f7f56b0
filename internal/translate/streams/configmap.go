package streams

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/model/nginx"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/model/snapshot"
)

// configMap opens the ports that are defined in a ConfigMap. name is the ConfigMap, and option is the option that
// refers to it.
func (r *reading) configMap(name ir.Name, option string, protocol ir.Protocol) {
	if name.IsZero() {
		return
	}
	ref := name.Of(kinds.ConfigMap)
	r.depend(ref)
	verdict := r.verdict(ref)
	object, ok := snapshot.Of[*corev1.ConfigMap](r.snapshot).Get(name.Namespace, name.Name)
	if !ok {
		verdict.Problems = append(verdict.Problems, report.Problem{
			Severity: report.Warning, Reason: report.ConfigMapNotFound,
			Message: fmt.Sprintf(
				"the ConfigMap %s of the option %s does not exist: no %s ports are open until it exists",
				name, option, upper(protocol)),
		})
		return
	}
	for _, key := range slices.SortedFunc(maps.Keys(object.Data), byNumber) {
		p := isolatingPanics(func() *report.Problem { return r.entry(key, object.Data[key], protocol, ref) })
		if p != nil {
			p.Field = dataField(key)
			verdict.Problems = append(verdict.Problems, *p)
		}
	}
}

func dataField(key string) string { return "data[" + key + "]" }

func upper(protocol ir.Protocol) string { return strings.ToUpper(string(protocol)) }

// byNumber sorts the keys of a ConfigMap, which are port numbers, ignoring leading zeros. If two keys differ only in
// leading zeros, the key with fewer zeros comes first, so that the valid key without leading zeros takes precedence.
func byNumber(a, b string) int {
	return cmp.Or(cmp.Compare(strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")), cmp.Compare(len(a), len(b)))
}

// entry opens the port that an entry of a ConfigMap defines. It returns a problem if the entry is invalid or conflicts
// with another port, otherwise nil.
func (r *reading) entry(key, value string, protocol ir.Protocol, of ir.Ref) *report.Problem {
	w, p := readEntry(key, value, protocol)
	if p != nil {
		return p
	}
	if p := r.take(w, of); p != nil {
		return p
	}
	return r.open(w, of)
}

// readEntry parses an entry of a ConfigMap. The key is the port, and the value is
// "namespace/service:port[:PROXY][:PROXY]". With the first PROXY, clients must send a PROXY protocol header. With the
// second PROXY, the backend gets such a header.
func readEntry(key, value string, protocol ir.Protocol) (*wish, *report.Problem) {
	port, ok := readPort(key)
	if !ok {
		return nil, invalid("%q is not a port: the key must be a number from 1 to 65535, and the value must be %s", key,
			form(protocol))
	}
	parts := strings.Split(value, ":")
	namespace, service, _ := strings.Cut(parts[0], "/")
	if len(parts) < 2 || len(parts) > 4 || !named(namespace, service, parts[1]) {
		return nil, unreadable(value, protocol)
	}
	w := &wish{
		place: place{protocol, port}, target: parts[1], field: dataField(key),
		service: ir.Ref{Kind: kinds.Service, Namespace: namespace, Name: service},
	}
	for i, flag := range parts[2:] {
		switch {
		case flag == "":
		case !strings.EqualFold(flag, "PROXY"):
			return nil, unreadable(value, protocol)
		case protocol == ir.UDP:
			return nil, invalid("%q contains the flag PROXY, which is for TCP ports only: write %s", value,
				form(protocol))
		case i == 0:
			w.acceptProxy = true
		default:
			w.sendProxy = ir.ProxyV1
		}
	}
	return w, nil
}

// IsEntry reports whether a key and a value of a ConfigMap are a valid definition of a port.
func IsEntry(key, value string) bool {
	_, p := readEntry(key, value, ir.TCP)
	return p == nil
}

// form returns a description of the required format of a ConfigMap value, for use in messages.
func form(protocol ir.Protocol) string {
	if protocol == ir.UDP {
		return "namespace/service:port"
	}
	return "namespace/service:port[:PROXY[:PROXY]]"
}

// The function unreadable returns the problem to report for a value that cannot be parsed as a port definition. The
// message mentions spaces and line breaks if the value contains any, because they are easy to overlook.
func unreadable(value string, protocol ir.Protocol) *report.Problem {
	hint := ""
	if strings.ContainsFunc(value, unicode.IsSpace) {
		hint = ", without spaces and line breaks"
	}
	return invalid("%s is not an entry: write %s%s", nginx.Quote(value), form(protocol), hint)
}

// readPort parses a port number from 1 to 65535. It returns false if text is not such a number.
func readPort(text string) (uint16, bool) {
	number, err := strconv.ParseUint(text, 10, 16)
	return uint16(number), err == nil && number != 0
}

// The function named reports whether the arguments are valid names of a namespace, a Service and a port. The API server
// does not check the values of a ConfigMap. An invalid name could result in the ID of another backend.
func named(namespace, service, port string) bool {
	return len(validation.IsDNS1123Label(namespace)) == 0 && len(validation.IsDNS1123Subdomain(service)) == 0 &&
		len(validation.IsDNS1123Label(port)) == 0
}
