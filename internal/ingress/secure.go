package ingress

import "strings"

// secures says whether the Ingress has an entry of tls for a host of its rules, or asks an issuer for all of them. What the
// entry is good for does not matter: also one whose Secret is missing says that the host is meant to be asked by HTTPS.
func (r *Result) secures(host string) bool {
	if _, ok := r.Paths[host]; !ok || host == "" {
		return false
	}
	if r.Certificates[host] != nil {
		return true
	}
	if implied := r.Implied[host]; implied != nil && implied.Refusal == nil {
		return true
	}
	above := WildcardOf(host)
	for i := range r.Object.Spec.TLS {
		hosts := r.Object.Spec.TLS[i].Hosts
		if len(hosts) == 0 {
			return true
		}
		for _, h := range hosts {
			if name, err := Host(h); err == nil && (name == host || name == above) {
				return true
			}
		}
	}
	return false
}

// WildcardOf returns the wildcard that stands for a host, too: "*.example.com" for "www.example.com". It is empty if none
// does.
func WildcardOf(host string) string {
	dot := strings.IndexByte(host, '.')
	if dot <= 0 || strings.HasPrefix(host, "*.") {
		return ""
	}
	return "*" + host[dot:]
}
