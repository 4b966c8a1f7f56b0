package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"syscall"
)

// nginxMissing is what the table says without nginx.
const nginxMissing = "nginx is not installed: apt-get install nginx-light"

// serverProgram returns the path of a program, or nothing. Debian has servers where only root's shell looks.
func serverProgram(name string) string {
	for _, name := range []string{name, "/usr/sbin/" + name} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// nginxConfig proxies each host to one backend. It tells the backend about the client as ingress-nginx does, keeps as many
// connections as ingress-nginx keeps, and closes none because of its age. Its values are a folder for its files, the
// address to listen on and that of the backend.
const nginxConfig = `daemon off;
master_process on;
worker_processes auto;
pid %[1]s/nginx.pid;
error_log stderr warn;
events { worker_connections 4096; }
http {
	access_log off;
	client_body_temp_path %[1]s/body;
	proxy_temp_path %[1]s/proxy;
	fastcgi_temp_path %[1]s/fastcgi;
	uwsgi_temp_path %[1]s/uwsgi;
	scgi_temp_path %[1]s/scgi;
	keepalive_requests 1000000000;
	upstream backend {
		server %[3]s;
		keepalive 320;
		keepalive_requests 1000000000;
	}
	server {
		listen %[2]s;
		server_name %[4]s;
		location / {
			proxy_pass http://backend;
			proxy_http_version 1.1;
			proxy_set_header Connection "";
			proxy_set_header Host $http_host;
			proxy_set_header X-Real-IP $remote_addr;
			proxy_set_header X-Forwarded-For $remote_addr;
			proxy_set_header X-Forwarded-Host $http_host;
			proxy_set_header X-Forwarded-Proto $scheme;
		}
	}
}
`

// startNginx starts nginx with one host. It is nil if there is no nginx. The master ends its workers when it is asked to
// end; it could not when it is killed.
func startNginx(ctx context.Context, s site) (*contestant, error) {
	path := serverProgram("nginx")
	if path == "" {
		return nil, nil //nolint:nilnil // no nginx is no fault
	}
	c, err := newContestant(s.folder, "nginx", 1)
	if err != nil {
		return c, err
	}
	c.idle = true
	text := fmt.Appendf(nil, nginxConfig, c.folder, c.http, s.backend, hostName(1))
	return c, c.start(ctx, nginxSetup(path, c.folder), text, func(ctx context.Context) bool { return c.serves(ctx, 1) })
}

func nginxSetup(path, folder string) setup {
	config := filepath.Join(folder, "nginx.conf")
	return setup{program{path, []string{"-p", folder, "-e", "stderr", "-c", config}, syscall.SIGTERM}, config}
}
