package daemons

import (
	"fmt"
	"syscall"
	"testing"
)

// nginxConfig is the format string of nginx's configuration. Its two arguments are the folder for all files and the
// content of the http block.
const nginxConfig = `daemon off;
worker_processes 2;
pid %[1]s/nginx.pid;
error_log stderr crit;
events { worker_connections 4096; }
http {
	access_log off;
	client_body_temp_path %[1]s/body;
	proxy_temp_path %[1]s/proxy;
	fastcgi_temp_path %[1]s/fastcgi;
	uwsgi_temp_path %[1]s/uwsgi;
	scgi_temp_path %[1]s/scgi;
%[2]s
}
`

// StartNginx runs nginx and waits until it accepts connections on address. block is the content of nginx's http block,
// which must configure nginx to listen on address. The test is skipped if neither Debian's package nginx-light nor
// another package with nginx is installed.
func StartNginx(t testing.TB, address, block string) {
	t.Helper()
	path := Program(t, "nginx", "nginx-light", "/usr/sbin")
	d := newDaemon(t)
	config := d.write("nginx.conf", fmt.Sprintf(nginxConfig, d.folder, block))
	d.start(syscall.SIGTERM, path, "-p", d.folder, "-e", "stderr", "-c", config)
	listens(t, "nginx", address)
}
