package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
)

// relay is a contestant that forwards a TCP port and a UDP port. Its TCP address is in the field http.
type relay struct {
	*contestant
	// udp is the UDP address. It is empty for a relay that only supports TCP.
	udp string

	// The figures of each round: bytes per second, bytes per second of processor time, and connections per second.
	throughput, economy, connects []figures
	// The figures of each round for datagrams per second and per second of processor time, in the order of
	// datagramLoads.
	datagrams, thrift [][]figures
	lost              int
}

// newRelay creates a folder in another folder, and chooses free addresses.
func newRelay(below, name string) (*relay, error) {
	c, err := newContestant(below, name, 0)
	if err != nil {
		return nil, err
	}
	udp, err := freeUDPAddress()
	return relayOf(c, udp), err
}

func relayOf(c *contestant, udp string) *relay {
	return &relay{
		contestant: c, udp: udp, datagrams: make([][]figures, len(datagramLoads)),
		thrift: make([][]figures, len(datagramLoads)),
	}
}

func freeUDPAddress() (string, error) {
	socket, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return socket.LocalAddr().String(), socket.Close()
}

// startRelay runs the process, waits until it forwards TCP and UDP, and pauses it.
func (r *relay) startRelay(ctx context.Context, s setup, b *streamBackend, config string) error {
	passes := func(ctx context.Context) bool {
		return oneByte(r.http) == nil && (r.udp == "" || oneDatagram(ctx, r.udp, b))
	}
	if err := r.launch(ctx, s, []byte(config), passes); err != nil {
		return err
	}
	return r.pause()
}

func oneDatagram(ctx context.Context, address string, b *streamBackend) bool {
	result, err := datagrams{datagramLoad: datagramLoad{64, 1, false}, address: address, backend: b, flows: 1,
		duration: lostAfter / 4}.run(ctx, nil)
	return err == nil && result.perSecond > 0
}

// streamPorts is a ConfigMap with TCP or UDP ports. Its values are "tcp" or "udp", and the entries.
const streamPorts = `---
apiVersion: v1
kind: ConfigMap
metadata: {name: %s, namespace: bench}
data: {%s}
`

// streamApp is the Service of these ports. Its values are the ports of the endpoint.
const streamApp = `---
apiVersion: v1
kind: Service
metadata: {name: app, namespace: bench}
spec: {ports: [{name: tcp, port: 80, protocol: TCP}, {name: udp, port: 80, protocol: UDP}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: app, namespace: bench, labels: {kubernetes.io/service-name: app}}
addressType: IPv4
endpoints: [{addresses: ["127.0.0.1"], conditions: {ready: true}}]
ports: [{name: tcp, port: %s, protocol: TCP}, {name: udp, port: %s, protocol: UDP}]
`

// streamManifests returns manifests with a port for each of the addresses.
func streamManifests(b *streamBackend, tcp, udp []string) string {
	text := fmt.Sprintf(streamApp, portOf(b.tcpAddress()), portOf(b.udpAddress()))
	for protocol, addresses := range map[string][]string{"tcp": tcp, "udp": udp} {
		entries := make([]string, 0, len(addresses))
		for _, address := range addresses {
			entries = append(entries, fmt.Sprintf("%q: bench/app:%s", portOf(address), protocol))
		}
		text += fmt.Sprintf(streamPorts, protocol, strings.Join(entries, ", "))
	}
	return text
}

// streamOptions is the Caddyfile of a process that only forwards TCP and UDP ports. Its values are the address of the
// admin API and the source.
const streamOptions = `{
	admin %s
	k8singress {
		reach_allow 127.0.0.0/8
		%s
		http off
		https off
		tcp_services bench/tcp
		udp_services bench/udp
		stream_bind 127.0.0.1
	}
}
`

// startOurRelay starts Caddy as a controller for a folder of manifests.
func startOurRelay(ctx context.Context, s site, b *streamBackend) (*relay, error) {
	r, err := newRelay(s.folder, "k8singress")
	if err != nil {
		return r, err
	}
	if err := writeManifest(r.manifests(), streamManifests(b, []string{r.http}, []string{r.udp})); err != nil {
		return r, err
	}
	return r, r.startRelay(ctx, s.caddy(r.folder, "Caddyfile"), b,
		fmt.Sprintf(streamOptions, r.admin, "manifests "+r.manifests()))
}

func writeManifest(folder, text string) error {
	return errors.Join(os.MkdirAll(folder, 0o755), os.WriteFile(filepath.Join(folder, "all.yaml"), []byte(text), 0o644))
}

func portOf(address string) string { return address[strings.LastIndexByte(address, ':')+1:] }

// startStockRelay starts Caddy with the app and the proxy handler of caddy-l4.
func startStockRelay(ctx context.Context, s site, b *streamBackend) (*relay, error) {
	r, err := newRelay(s.folder, "caddy-l4")
	if err != nil {
		return r, err
	}
	config, err := json.Marshal(stockConfig(r.admin, map[string]string{
		"tcp/" + r.http: "tcp/" + b.tcpAddress(), "udp/" + r.udp: "udp/" + b.udpAddress(),
	}))
	if err != nil {
		return r, err
	}
	return r, r.startRelay(ctx, s.caddy(r.folder, "caddy.json"), b, string(config))
}

// stockConfig returns a Caddy configuration with the shortest possible caddy-l4 routes. The keys of routes are the
// addresses to listen on, and the values are the addresses of the backend.
func stockConfig(admin string, routes map[string]string) object {
	servers := object{}
	for from, to := range routes {
		servers[from] = object{
			"listen": []string{from},
			"routes": []object{{"handle": []object{{"handler": "proxy",
				"upstreams": []object{{"dial": []string{to}}}}}}},
		}
	}
	return object{
		"admin": object{"listen": admin, "config": object{"persist": false}},
		"apps":  object{"layer4": object{"servers": servers}},
	}
}

// streamModule is the path at which Debian installs nginx's module for TCP and UDP.
const streamModule = "/usr/lib/nginx/modules/ngx_stream_module.so"

const nginxStreamMissing = "nginx with its stream module is not installed: apt-get install nginx-light " +
	"libnginx-mod-stream"

// nginxStreamConfig uses the values that ingress-nginx sets for TCP and UDP ports. Its values are the module, a folder
// for its files, the addresses to listen on for TCP and UDP, and the addresses of the backend.
const nginxStreamConfig = `load_module %[1]s;
daemon off;
master_process on;
worker_processes auto;
pid %[2]s/nginx.pid;
error_log stderr warn;
events { worker_connections 4096; }
stream {
	access_log off;
	server { listen %[3]s; proxy_timeout 600s; proxy_pass %[4]s; }
	server { listen %[5]s udp; proxy_timeout 60s; proxy_pass %[6]s; }
}
`

// startNginxRelay starts nginx with a TCP port and a UDP port. It returns nil if nginx or its stream module is not
// installed.
func startNginxRelay(ctx context.Context, s site, b *streamBackend) (*relay, error) {
	path := serverProgram("nginx")
	if _, err := os.Stat(streamModule); path == "" || err != nil {
		return nil, nil //nolint:nilnil // no nginx is no fault
	}
	r, err := newRelay(s.folder, "nginx")
	if err != nil {
		return r, err
	}
	r.idle = true
	text := fmt.Sprintf(nginxStreamConfig, streamModule, r.folder, r.http, b.tcpAddress(), r.udp, b.udpAddress())
	return r, r.startRelay(ctx, nginxSetup(path, r.folder), b, text)
}

// haproxyConfig forwards TCP. Its values are the address to listen on and the address of the backend.
const haproxyConfig = `global
	maxconn 4096
defaults
	mode tcp
	timeout connect 5s
	timeout client 600s
	timeout server 600s
listen bench
	bind %s
	server backend %s
`

// startHAProxyRelay starts haproxy with a TCP port. It returns nil if haproxy is not installed.
func startHAProxyRelay(ctx context.Context, s site, b *streamBackend) (*relay, error) {
	path := serverProgram("haproxy")
	if path == "" {
		return nil, nil //nolint:nilnil // no haproxy is no fault
	}
	r, err := newRelay(s.folder, "haproxy")
	if err != nil {
		return r, err
	}
	r.udp = ""
	return r, r.startRelay(ctx, haproxySetup(path, r.folder), b, fmt.Sprintf(haproxyConfig, r.http, b.tcpAddress()))
}

// direct returns a relay without a proxy. Its figures show the limits of the load generator and the backend.
func direct(b *streamBackend) *relay {
	return relayOf(&contestant{name: "no proxy", http: b.tcpAddress(), idle: true}, b.udpAddress())
}

// measureRelay adds one round.
func (r *relay) measureRelay(ctx context.Context, o options, b *streamBackend) error {
	if err := r.resume(); err != nil {
		return err
	}
	if err := errors.Join(r.measureTCP(ctx, o, b), r.measureUDP(ctx, o, b)); err != nil {
		return fmt.Errorf("%s: %w", r.name, err)
	}
	return r.pause()
}

func (r *relay) measureTCP(ctx context.Context, o options, b *streamBackend) error {
	got, err := bulk{r.http, bulkStreams, o.duration / 3, o.duration}.run(ctx, b, r.process)
	if err != nil {
		return err
	}
	made := o.repetition(r.process).count(ctx, func(int) error { return oneByte(r.http) })
	if err := errors.Join(ctx.Err(), made.first); err != nil {
		return err
	}
	r.throughput = append(r.throughput, figures{perSecond: got.perSecond})
	r.economy = append(r.economy, figures{perSecond: got.perProcessor})
	r.connects = append(r.connects, made.figures)
	return nil
}

func (r *relay) measureUDP(ctx context.Context, o options, b *streamBackend) error {
	if r.udp == "" {
		return nil
	}
	for i, load := range datagramLoads {
		if err := takeTrains(b.udp, load.trains); err != nil {
			return err
		}
		got, err := datagrams{load, r.udp, b, datagramFlows, o.duration / 3, o.duration}.run(ctx, r.process)
		if err != nil {
			return err
		}
		r.datagrams[i] = append(r.datagrams[i], figures{perSecond: got.perSecond})
		r.thrift[i] = append(r.thrift[i], figures{perSecond: got.perProcessor})
		r.lost += got.lost
	}
	return nil
}
