package main

import (
	"context"
	"fmt"
	"path/filepath"
	"syscall"
)

const haproxyMissing = "haproxy is not installed: apt-get install haproxy"

// haproxySetup runs haproxy in the foreground.
func haproxySetup(path, folder string) setup {
	config := filepath.Join(folder, "haproxy.cfg")
	return setup{program{path, []string{"-db", "-f", config}, syscall.SIGTERM}, config}
}

// haproxyWebConfig configures haproxy for HTTP and HTTPS like nginxConfig. Its values are the addresses to listen on,
// the file with the certificate and its key, and the address of the backend.
const haproxyWebConfig = `global
	maxconn 4096
	ssl-default-bind-options ssl-min-ver TLSv1.2 no-tls-tickets
defaults
	mode http
	option http-keep-alive
	http-reuse always
	timeout connect 5s
	timeout client 75s
	timeout server 60s
frontend bench
	bind %[1]s
	bind %[2]s ssl crt %[3]s alpn h2,http/1.1
	http-request set-header X-Request-ID %%[uuid()] unless { req.hdr(X-Request-ID) -m found }
	http-request set-header X-Real-IP %%[src]
	http-request set-header X-Forwarded-For %%[src]
	http-request set-header X-Forwarded-Host %%[req.hdr(Host)]
	http-request set-header X-Forwarded-Port %%[dst_port]
	http-request set-header X-Forwarded-Proto %%[ssl_fc,iif(https,http)]
	http-request set-header X-Forwarded-Scheme %%[ssl_fc,iif(https,http)]
	http-request set-header X-Scheme %%[ssl_fc,iif(https,http)]
	http-request del-header Proxy
	default_backend backend
backend backend
	server one %[4]s
`

// startHAProxy starts haproxy. It returns nil if haproxy is not installed.
func startHAProxy(ctx context.Context, s site, certificate string) (*contestant, error) {
	path := serverProgram("haproxy")
	if path == "" {
		return nil, nil //nolint:nilnil // no haproxy is no fault
	}
	c, err := newContestant(s.folder, "haproxy", 1)
	if err != nil {
		return c, err
	}
	c.idle = true
	text := fmt.Appendf(nil, haproxyWebConfig, c.http, c.https, certificate, s.backend)
	return c, c.start(ctx, haproxySetup(path, c.folder), text, c.servesFirst)
}
