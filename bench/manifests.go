package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// perFile is how many hosts stand in one manifest.
const perFile = 100

// hostName returns the name of a host, counted from 1.
func hostName(i int) string { return fmt.Sprintf("app-%05d.bench.test", i) }

// class is what the Ingresses belong to.
const class = `apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: nginx}
spec: {controller: k8s.io/ingress-nginx}
`

// applications are what a folder of manifests describes.
type applications struct {
	hosts int
	// endpoints are the first host's; the others have one.
	endpoints int
	// backend is the address of the first endpoint. The others have its port, on other addresses of this machine.
	backend string
	// shared says that all have the Service of the first.
	shared bool
	// annotations are those of each Ingress, and of the one that changes, as annotated writes them; empty is none.
	annotations string
	// more is further objects.
	more string
}

// annotated writes annotations of ingress-nginx, each "name: value", as they stand in the metadata of an Ingress.
func annotated(all ...string) string {
	return ", annotations: {nginx.ingress.kubernetes.io/" + strings.Join(all, ", nginx.ingress.kubernetes.io/") + "}"
}

// ingress is that of one host. Its values are its number, the host, the number of its Service, and its annotations.
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

// service is a Service and its EndpointSlice. Its values are its number, the endpoints and their port.
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

// changing is the Ingress that changes. Its values are the number of the change, which is in the path, and its
// annotations.
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

// writeManifests fills a folder with the objects of a number of hosts.
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

// write adds the objects of one host.
func (a applications) write(text *strings.Builder, i int) {
	_, port, _ := strings.Cut(a.backend, ":")
	endpoints, of := 1, i
	if i == 1 {
		endpoints = a.endpoints
	}
	if a.shared {
		of = 1
	}
	fmt.Fprintf(text, ingress, i, hostName(i), of, a.annotations)
	if of == i {
		fmt.Fprintf(text, service, i, endpointList(endpoints), port)
	}
}

// endpointList has addresses of this machine, from 127.0.0.1 on.
func endpointList(count int) string {
	list := make([]string, 0, count)
	for i := range count {
		list = append(list, fmt.Sprintf(`{addresses: ["127.0.%d.%d"], conditions: {ready: true}}`, i/250, i%250+1))
	}
	return strings.Join(list, ", ")
}

// writeWhole puts a file into a folder of manifests at once, as kubectl apply or git would.
func writeWhole(folder, file, text string) error {
	next := folder + "-" + file
	if err := os.WriteFile(next, []byte(text), 0o644); err != nil {
		return err
	}
	return os.Rename(next, filepath.Join(folder, file))
}
