package featuretests

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestTenant18Endpoints checks that EndpointSlices of a few KB, which can describe any number of endpoints by their
// ports, are limited for each namespace. Ingresses beyond the limit get a warning, and use the capacity that becomes
// free.
func TestTenant18Endpoints(t *testing.T) {
	const ports, endpoints = 100, 600
	var open, targets, addresses, paths strings.Builder
	for i := range ports {
		fmt.Fprintf(&open, "{name: p%d, port: %[1]d},", i+1)
		fmt.Fprintf(&targets, "{name: p%d, port: %d},", i+1, i+1000)
		fmt.Fprintf(&paths,
			"\n      - {path: /%d, pathType: Prefix, backend: {service: {name: many, port: {number: %[1]d}}}}", i+1)
	}
	for i := range endpoints {
		fmt.Fprintf(&addresses, "\n- addresses: [192.0.%d.%d]", i/250, i%250)
	}
	many := fmt.Sprintf(`---
apiVersion: v1
kind: Service
metadata: {name: many}
spec: {ports: [%s]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: many-1, labels: {kubernetes.io/service-name: many}}
addressType: IPv4
ports: [%s]
endpoints:%s
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: many}
spec:
  ingressClassName: nginx
  rules:
  - host: many.example
    http:
      paths:%s
`, open.String(), targets.String(), addresses.String(), paths.String())
	in := start(t, rivals(t)+tenant("a", 10, rule("main", "a.example", "Prefix", "/", "one")))
	in.attacks(20, many)
	ip, port := backend(t, "late")
	in.write("late.yaml", tenant("b", 30, service("z", port, ip), rule("late", "late.example", "Prefix", "/", "z"))+
		tenant("a", 30, service("z", port, ip), rule("late", "other.example", "Prefix", "/", "z")))
	in.becomes("other.example", "/", http.StatusOK, "late /")
	in.becomes("late.example", "/", http.StatusServiceUnavailable, "")
	for _, name := range []string{"many", "late"} {
		in.eventually("a verdict on "+name, func() error {
			if got := in.message("Ingress/b/"+name, "QuotaExceeded"); !strings.Contains(got,
				"50000 endpoints together") {
				return fmt.Errorf("it is told %q", got)
			}
			return nil
		})
	}
	in.write("b.yaml", "")
	in.becomes("late.example", "/", http.StatusOK, "late /")
	in.eventually("no verdict, with room", func() error {
		if got := in.reasons("Ingress/b/late"); len(got) > 0 {
			return fmt.Errorf("the Ingress is told %v", got)
		}
		return nil
	})
}
