package featuretests

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/tests/daemons"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// snippetServer is ingress-nginx's configuration of nginx for the Ingress of a file. Its arguments are the address to
// listen on, the name of the Ingress, and the file's location, texts before and after the snippet, snippet, other
// locations, and text for all hosts.
const snippetServer = `
	set_real_ip_from 127.0.0.0/8;
	real_ip_header X-Forwarded-For;
	real_ip_recursive on;
	upstream second { server OTHER; }
	%[8]s
	server {
		listen %[1]s;
		location %[3]s {
			set $namespace default;
			set $ingress_name %[2]s;
			set $service_name %[2]s;
			set $service_port 80;
` + likePathOfIngressNginx + `
			%[4]s
			%[6]s
			%[5]s
		}
		%[7]s
	}
`

// TestSnippetsLikeNginx checks that nginx does with each snippet what the files of testdata/snippets say. Together
// with TestSnippetFiles, it shows that the controller does the same, except where a file gives a reason.
func TestSnippetsLikeNginx(t *testing.T) {
	for _, f := range snippetFiles(t) {
		t.Run(f.name, func(t *testing.T) {
			endpoints := f.startEndpoints(t)
			nginx := endpoints.startNginx(t)
			client := &http.Client{
				Timeout: deadline, Transport: &http.Transport{DisableCompression: true},
				CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			}
			t.Cleanup(client.CloseIdleConnections)
			for _, x := range f.Exchanges {
				want := x.snippetEffect
				if x.Nginx != nil {
					want = *x.Nginx
				}
				got := endpoints.effectOf(t, client, "http://"+nginx, x.Request)
				got.check(t, x.Request, want.over("http"))
			}
		})
	}
}

func (e *snippetEndpoints) startNginx(t *testing.T) (address string) {
	t.Helper()
	var modules []string
	if strings.Contains(e.file.Snippet, "more_") {
		modules = append(modules, daemons.HeadersMore(t))
	}
	address = fixture.Address(t)
	location, of := e.file.Nginx.Location, &e.file.Nginx
	if location == "" {
		location = "/"
	}
	daemons.StartNginx(t, address, fmt.Sprintf(likeIngressNginx, e.ip+":"+e.port)+
		e.address(fmt.Sprintf(snippetServer, address, e.file.name, location, of.Before, of.After, e.file.Snippet,
			of.Server, e.file.HTTP)), modules...)
	return address
}
