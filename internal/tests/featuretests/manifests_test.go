package featuretests

import (
	"fmt"
	"strings"
)

// The functions of this file return objects as YAML documents. Each document starts with a line "---", so texts that
// start with one can be joined with +.

// join returns manifests as the text of one file. It adds the line "---" to manifests that do not start with it.
func join(manifests ...string) string {
	var file strings.Builder
	for _, m := range manifests {
		if !strings.HasPrefix(m, "---\n") {
			file.WriteString("---\n")
		}
		file.WriteString(strings.TrimSuffix(m, "\n") + "\n")
	}
	return file.String()
}

const class = `---
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: nginx}
spec: {controller: k8s.io/ingress-nginx}
`

// service returns a Service "default/NAME" with port 80 and one EndpointSlice with these addresses.
func service(name, port string, ips ...string) string {
	var endpoints strings.Builder
	for _, ip := range ips {
		fmt.Fprintf(&endpoints, "\n- addresses: [%s]", ip)
	}
	return fmt.Sprintf(`---
apiVersion: v1
kind: Service
metadata: {name: %[1]s}
spec: {ports: [{name: http, port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: %[1]s-1, labels: {kubernetes.io/service-name: %[1]s}}
addressType: IPv4
ports: [{name: http, port: %[2]s}]
endpoints:%[3]s
`, name, port, endpoints.String())
}

// rule returns an Ingress "default/NAME" with one host and one path.
func rule(name, host, kind, path, service string) string {
	return fmt.Sprintf(`---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: %s}
spec:
  ingressClassName: nginx
  rules:
  - host: %q
    http: {paths: [{path: %q, pathType: %s, backend: {service: {name: %s, port: {number: 80}}}}]}
`, name, host, path, kind, service)
}

// annotated returns an Ingress "default/NAME" for all paths of a host, with annotations.
func annotated(name, host, service string, annotations ...string) string {
	return annotate(rule(name, host, "Prefix", "/", service), annotations...)
}

// annotate adds annotations to an Ingress; keys and values alternate. A key without a prefix gets the prefix of
// ingress-nginx.
func annotate(rule string, annotations ...string) string {
	var lines strings.Builder
	for i := 0; i < len(annotations); i += 2 {
		key := annotations[i]
		if !strings.Contains(key, "/") {
			key = "nginx.ingress.kubernetes.io/" + key
		}
		fmt.Fprintf(&lines, "%s: %q, ", key, annotations[i+1])
	}
	return strings.Replace(rule, "}\nspec:", ", annotations: {"+strings.TrimSuffix(lines.String(), ", ")+"}}\nspec:", 1)
}

// configMap returns the ConfigMap "default/NAME". Each entry of data is a line of YAML, such as "hsts: 'true'".
func configMap(name string, data ...string) string {
	return fmt.Sprintf("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata:\n  %s\n", name,
		strings.Join(data, "\n  "))
}

// global returns the ConfigMap default/global.
func global(data ...string) string { return configMap("global", data...) }
