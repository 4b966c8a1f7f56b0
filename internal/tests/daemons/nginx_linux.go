package daemons

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
)

// nginxConfig is the format string of nginx's configuration. Its arguments are the folder for all files, the content of
// the http block, and the directives that load modules.
const nginxConfig = `daemon off;
%[3]s
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
// which must configure nginx to listen on address. modules are the paths of modules to load. The test is skipped if
// neither Debian's package nginx-light nor another package with nginx is installed.
func StartNginx(t testing.TB, address, block string, modules ...string) {
	t.Helper()
	path := Program(t, "nginx", "nginx-light", "/usr/sbin")
	d := newDaemon(t)
	var load strings.Builder
	for _, m := range modules {
		fmt.Fprintf(&load, "load_module %s;\n", m)
	}
	config := d.write("nginx.conf", fmt.Sprintf(nginxConfig, d.folder, block, load.String()))
	d.start(syscall.SIGTERM, path, "-p", d.folder, "-e", "stderr", "-c", config)
	listens(t, "nginx", address)
}

// HeadersMore returns the path of nginx's module with more_set_headers and the like. The test is skipped if Debian's
// package with the module is not installed.
func HeadersMore(t testing.TB) string {
	t.Helper()
	return Program(t, "ngx_http_headers_more_filter_module.so", "libnginx-mod-http-headers-more-filter",
		"/usr/lib/nginx/modules")
}
