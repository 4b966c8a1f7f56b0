package streams

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/k8singress/k8singress/internal/model/nginx"
)

const listValues = "comma-separated ports from 1 to 65535; a colon and the number or name of the Service's port may " +
	"follow each"

// The annotations with which a Service opens ports.
var (
	tcpPorts = Annotation{
		Name: prefix + "tcp-ports",
		Doc: "The TCP ports to open for the Service, if the administrator allows them with " +
			"[`service_tcp_ports`](caddyfile.md#service_tcp_ports). A port that a ConfigMap or an older Service " +
			"already uses is not opened for this Service. An entry such as `5432:pg` opens the port 5432, and " +
			"forwards to the port `pg` of the Service.",
		Values: listValues, Example: "5432:pg, 6379", Default: "none",
		Parse: nginx.Into(func(s *Settings) *[]Listed { return &s.TCPPorts }, readList),
	}
	udpPorts = Annotation{
		Name: prefix + "udp-ports",
		Doc: "The UDP ports to open for the Service, if the administrator allows them with " +
			"[`service_udp_ports`](caddyfile.md#service_udp_ports). A port that a ConfigMap or an older Service " +
			"already uses is not opened for this Service. An entry such as `5353:dns` opens the port 5353, and " +
			"forwards to the port `dns` of the Service.",
		Values: listValues, Example: "5353:dns", Default: "none",
		Parse: nginx.Into(func(s *Settings) *[]Listed { return &s.UDPPorts }, readList),
	}
)

// readList parses a comma-separated list of ports. Invalid entries are skipped, and the error lists them.
func readList(value string) ([]Listed, error) {
	var list []Listed
	var bad []string
	for _, word := range nginx.List(value) {
		listed, err := readListed(word)
		switch {
		case err != nil:
			bad = append(bad, err.Error())
		case slices.ContainsFunc(list, func(l Listed) bool { return l.Port == listed.Port }):
			bad = append(bad, fmt.Sprintf("port %d is listed twice, and the first entry is used", listed.Port))
		default:
			list = append(list, listed)
		}
	}
	switch {
	case len(bad) > 0:
		return list, nginx.Partial(strings.Join(bad, "; "))
	case len(list) == 0:
		return nil, fmt.Errorf("%s contains no port: write a list such as 5432:pg, 6379", nginx.Quote(value))
	}
	return list, nil
}

func readListed(word string) (Listed, error) {
	number, target, named := strings.Cut(word, ":")
	port, ok := readPort(number)
	if !named {
		target = strconv.Itoa(int(port))
	}
	if !ok || len(validation.IsDNS1123Label(target)) > 0 {
		hint := ""
		if strings.HasPrefix(word, ":") || strings.HasSuffix(word, ":") {
			hint = ", without a space next to the colon"
		}
		return Listed{}, fmt.Errorf("%s is not a valid entry: write a port from 1 to 65535, such as 5432 or 5432:pg%s",
			nginx.Quote(word), hint)
	}
	return Listed{Port: port, Target: target}, nil
}
