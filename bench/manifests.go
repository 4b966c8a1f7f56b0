package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// perFile is the number of hosts in one manifest file.
const perFile = 100

// hostName returns the name of a host. Hosts are counted from 1.
func hostName(i int) string { return fmt.Sprintf("app-%05d.bench.test", i) }

// class is the manifest of the IngressClass that all Ingresses use.
const class = `apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: nginx}
spec: {controller: k8s.io/ingress-nginx}
`

// applications describes the contents of a folder of manifests.
type applications struct {
	hosts int
	// endpoints is the number of endpoints of the first host. Other hosts have one.
	endpoints int
	// backend is the address of the first endpoint. The other endpoints have the same port on other addresses of this
	// machine.
	backend string
	// shared reports whether all hosts use the Service of the first host.
	shared bool
	// annotations are used by the Ingresses in turn, in the format of annotated. If there are none, no Ingress has
	// annotations.
	annotations turns
	// more contains manifests of more objects.
	more string
}

// turns are texts that are used in turn.
type turns []string

// of returns the text for a number, or an empty text if there are no texts.
func (t turns) of(number int) string {
	if len(t) == 0 {
		return ""
	}
	return t[number%len(t)]
}

// annotated returns annotations of ingress-nginx in the format for the metadata of an Ingress. Each argument has the
// form "name: value".
func annotated(all ...string) string {
	return ", annotations: {nginx.ingress.kubernetes.io/" + strings.Join(all, ", nginx.ingress.kubernetes.io/") + "}"
}

// ingress is the manifest of one host's Ingress. Its values are the number of the host, its name, the number of its
// Service, and its annotations.
const ingress = `---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: app-%05[1]d, namespace: bench%[4]s}
spec:
  ingressClassName: nginx
  rules:
    - host: %[2]s
      http:
        paths:
          - path: /
            pathType: Prefix
            backend: {service: {name: app-%05[3]d, port: {number: 80}}}
`

// service is the manifest of a Service and its EndpointSlice. Its values are its number, the endpoints and their port.
const service = `---
apiVersion: v1
kind: Service
metadata: {name: app-%05[1]d, namespace: bench}
spec: {ports: [{port: 80, targetPort: %[3]s}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: app-%05[1]d, namespace: bench, labels: {kubernetes.io/service-name: app-%05[1]d}}
addressType: IPv4
endpoints: [%[2]s]
ports: [{port: %[3]s}]
`

// changing is the manifest of the Ingress that change rewrites. Its values are the number of the change, which is part
// of the path, and its annotations.
const changing = `apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: changing, namespace: bench%[2]s}
spec:
  ingressClassName: nginx
  rules:
    - host: changing.bench.test
      http:
        paths:
          - path: /change-%[1]d
            pathType: Exact
            backend: {service: {name: app-00001, port: {number: 80}}}
`

const (
	changingHost = "changing.bench.test"
	changingFile = "changing.yaml"
)

// writeManifests writes the manifests of all hosts to a new folder.
func writeManifests(folder string, a applications) error {
	if err := os.Mkdir(folder, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, "class.yaml"), []byte(class+a.more), 0o644); err != nil {
		return err
	}
	for first := 1; first <= a.hosts; first += perFile {
		var text strings.Builder
		for i := first; i < first+perFile && i <= a.hosts; i++ {
			a.write(&text, i)
		}
		name := filepath.Join(folder, fmt.Sprintf("apps-%05d.yaml", first))
		if err := os.WriteFile(name, []byte(text.String()), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// write appends the objects of one host.
func (a applications) write(text *strings.Builder, i int) {
	_, port, _ := strings.Cut(a.backend, ":")
	endpoints, of := 1, i
	if i == 1 {
		endpoints = a.endpoints
	}
	if a.shared {
		of = 1
	}
	fmt.Fprintf(text, ingress, i, hostName(i), of, a.annotations.of(i))
	if of == i {
		fmt.Fprintf(text, service, i, endpointList(endpoints), port)
	}
}

// endpointList returns a list of addresses of this machine, starting with 127.0.0.1.
func endpointList(count int) string {
	list := make([]string, 0, count)
	for i := range count {
		list = append(list, fmt.Sprintf(`{addresses: ["127.0.%d.%d"], conditions: {ready: true}}`, i/250, i%250+1))
	}
	return strings.Join(list, ", ")
}

// writeWhole replaces a file in a folder of manifests atomically.
func writeWhole(folder, file, text string) error {
	next := folder + "-" + file
	if err := os.WriteFile(next, []byte(text), 0o644); err != nil {
		return err
	}
	return os.Rename(next, filepath.Join(folder, file))
}
