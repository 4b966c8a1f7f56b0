package featuretests

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/tests/daemons"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// snippetServer is ingress-nginx's configuration of nginx for the Ingress of a file. Its arguments are the address to
// listen on, the name of the Ingress, the file's location, the texts of this location, and the texts of all hosts and
// of the server.
const snippetServer = `
	upstream second { server OTHER; }
	%[5]s
	server {
		listen %[1]s;
		location %[3]s {
			set $namespace default;
			set $ingress_name %[2]s;
			set $service_name %[2]s;
			set $service_port 80;
` + likePathOfIngressNginx + `
			%[4]s
		}
		%[6]s
	}
`

// trustClient makes nginx trust the client of the test, as ingress-nginx does for keys of the ConfigMap.
const trustClient = `
	set_real_ip_from 127.0.0.0/8;
	real_ip_header X-Forwarded-For;
	real_ip_recursive on;
`

// TestSnippetsLikeNginx checks that nginx does with each snippet what the files of testdata/snippets say. Together
// with TestSnippetFiles, it shows that the controller does the same, except where a file gives a reason.
func TestSnippetsLikeNginx(t *testing.T) {
	for _, f := range snippetFiles(t) {
		t.Run(f.name, f.likeNginx)
	}
}

// TestExamplesLikeNginx checks that nginx does with the examples of docs/snippets.md what the page says. It leaves out
// examples with more Services, since ingress-nginx derives more than the snippet from them.
func TestExamplesLikeNginx(t *testing.T) {
	for _, example := range snippetExamples(t) {
		if example.Annotations["auth-url"] == "" && example.OtherPath == "" {
			t.Run(example.title, example.likeNginx)
		}
	}
}

// likeNginx checks the exchanges of a file with nginx.
func (f *snippetFile) likeNginx(t *testing.T) {
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
}

func (e *snippetEndpoints) startNginx(t *testing.T) (address string) {
	t.Helper()
	f := e.file
	location, keys := f.Nginx.Location, f.ConfigMap
	if location == "" {
		location = "/"
	}
	ofLocation := []string{f.Nginx.Before, f.Snippet, keys["location-snippet"], f.Nginx.After}
	ofServer := []string{f.Server, keys["server-snippet"], f.Nginx.Server}
	ofAll := f.HTTP
	if !strings.Contains(ofAll, trustsProxies) {
		ofAll = trustClient + ofAll
	}
	address = fixture.Address(t)
	text := fmt.Sprintf(snippetServer, address, f.name, location, strings.Join(ofLocation, "\n"), ofAll,
		strings.Join(ofServer, "\n"))
	// A location may name the Service of the second Ingress.
	text = strings.NewReplacer("http://"+f.name+"-other", "http://second", "https://"+f.name+"-other:80",
		"https://second").Replace(text)
	if e.authority != nil {
		authority := publicFile(t, e.authority.PEM())
		text = strings.ReplaceAll(text, "/etc/ingress-controller/ssl/ca-default-"+f.name+".pem", authority)
		text = strings.ReplaceAll(text, "http://upstream_balancer", "https://upstream_balancer")
	}
	var modules []string
	if strings.Contains(text, "more_") {
		modules = append(modules, daemons.HeadersMore(t))
	}
	daemons.StartNginx(t, address, fmt.Sprintf(likeIngressNginx, e.ip+":"+e.port)+e.address(text), modules...)
	return address
}

// publicFile returns the path of a file with this content that all accounts can read. It is removed after the test.
func publicFile(t *testing.T, content []byte) string {
	t.Helper()
	file, err := os.CreateTemp("", "k8singress")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(file.Name()) })
	_, err = file.Write(content)
	if err := errors.Join(err, file.Chmod(0o644), file.Close()); err != nil {
		t.Fatal(err)
	}
	return file.Name()
}
