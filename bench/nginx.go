package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"syscall"
)

// nginxMissing is the text in the table if nginx is not installed.
const nginxMissing = "nginx is not installed: apt-get install nginx-light"

// serverProgram returns the path of a program, or "" if it is not installed. Debian installs servers in /usr/sbin,
// which is not in the PATH of every user.
func serverProgram(name string) string {
	for _, name := range []string{name, "/usr/sbin/" + name} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// nginxConfig proxies two hosts to one backend, over HTTP and HTTPS, with the default values that the controller of
// ingress-nginx writes for an Ingress: headers about the client, no response buffering, 320 keep-alive connections, and
// no session tickets. There are three differences: no Lua, no access log, and no age limit for connections. Its values
// are a folder for its files, the addresses to listen on, the address of the backend, the names of the hosts, the file
// with the certificate and its key, and the user of its workers.
const nginxConfig = `daemon off;
%[7]s
master_process on;
worker_processes auto;
pid %[1]s/nginx.pid;
error_log stderr warn;
events { multi_accept on; worker_connections 16384; }
http {
	access_log off;
	client_body_temp_path %[1]s/body;
	proxy_temp_path %[1]s/proxy;
	fastcgi_temp_path %[1]s/fastcgi;
	uwsgi_temp_path %[1]s/uwsgi;
	scgi_temp_path %[1]s/scgi;
	sendfile on;
	tcp_nopush on;
	tcp_nodelay on;
	reset_timedout_connection on;
	server_tokens off;
	keepalive_timeout 75s;
	keepalive_requests 1000000000;
	client_header_buffer_size 1k;
	large_client_header_buffers 4 8k;
	client_body_buffer_size 8k;
	client_max_body_size 1m;
	http2_max_concurrent_streams 128;
	ssl_certificate %[6]s;
	ssl_certificate_key %[6]s;
	ssl_protocols TLSv1.2 TLSv1.3;
	ssl_session_cache shared:SSL:10m;
	ssl_session_timeout 10m;
	ssl_session_tickets off;
	ssl_buffer_size 4k;
	map $http_x_request_id $req_id { default $http_x_request_id; "" $request_id; }
	map $http_upgrade $connection_upgrade { default upgrade; "" ""; }
	upstream backend {
		server %[4]s;
		keepalive 320;
		keepalive_timeout 60s;
		keepalive_requests 1000000000;
	}
	server {
		listen %[2]s reuseport backlog=4096;
		listen %[3]s reuseport backlog=4096 ssl http2;
		server_name %[5]s;
		location / {
			proxy_pass http://backend;
			proxy_http_version 1.1;
			proxy_buffering off;
			proxy_buffer_size 4k;
			proxy_buffers 4 4k;
			proxy_request_buffering on;
			proxy_redirect off;
			proxy_next_upstream error timeout;
			proxy_next_upstream_tries 3;
			proxy_connect_timeout 5s;
			proxy_send_timeout 60s;
			proxy_read_timeout 60s;
			proxy_set_header Host $http_host;
			proxy_set_header Upgrade $http_upgrade;
			proxy_set_header Connection $connection_upgrade;
			proxy_set_header X-Request-ID $req_id;
			proxy_set_header X-Real-IP $remote_addr;
			proxy_set_header X-Forwarded-For $remote_addr;
			proxy_set_header X-Forwarded-Host $http_host;
			proxy_set_header X-Forwarded-Port $server_port;
			proxy_set_header X-Forwarded-Proto $scheme;
			proxy_set_header X-Forwarded-Scheme $scheme;
			proxy_set_header X-Scheme $scheme;
			proxy_set_header X-Original-Forwarded-For $http_x_forwarded_for;
			proxy_set_header Proxy "";
		}
	}
}
`

// startNginx starts nginx. It returns nil if nginx is not installed. nginx must be terminated and not killed, because
// only its master process can end the workers.
func startNginx(ctx context.Context, s site, certificate string) (*contestant, error) {
	path := serverProgram("nginx")
	if path == "" {
		return nil, nil //nolint:nilnil // no nginx is no fault
	}
	c, err := newContestant(s.folder, "nginx", 1)
	if err != nil {
		return c, err
	}
	c.idle = true
	owner, err := nginxOwner()
	if err != nil {
		return c, err
	}
	hosts := hostName(plainHost) + " " + hostName(secureHost)
	text := fmt.Appendf(nil, nginxConfig, c.folder, c.http, c.https, s.backend, hosts, certificate, owner)
	return c, c.start(ctx, nginxSetup(path, c.folder), text, c.servesFirst)
}

// nginxOwner returns a directive that runs the workers as root if this process runs as root. Long bodies are stored in
// a folder that only its owner can read.
func nginxOwner() (string, error) {
	if os.Getuid() != 0 {
		return "", nil
	}
	group, err := user.LookupGroupId("0")
	if err != nil {
		return "", err
	}
	return "user root " + group.Name + ";", nil
}

func nginxSetup(path, folder string) setup {
	config := filepath.Join(folder, "nginx.conf")
	return setup{program{path, []string{"-p", folder, "-e", "stderr", "-c", config}, syscall.SIGTERM}, config}
}
