package k8singress_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// putBackCaddyfile is the beginning of a Caddyfile. It needs the addresses of HTTP and of the admin API.
const putBackCaddyfile = `{
	servers %[1]s {
		name web
		max_header_size 2KB
		listener_wrappers {
			proxy_protocol {
				allow 127.0.0.0/8
			}
		}
	}
	admin %[2]s
`

// TestServersPutBack checks that the server for HTTP keeps what Caddy's global option servers has set for it, whatever
// a client of the admin API does with the server, and that the log names the options to use.
func TestServersPutBack(t *testing.T) {
	c, admin := newController(t), fixture.Address(t)
	file := filepath.Join(t.TempDir(), "Caddyfile")
	text := c.caddyfile("manifests " + c.manifests(newOrigin(t)))
	c.write(file, strings.Replace(text, "{\nadmin off\n", fmt.Sprintf(putBackCaddyfile, c.http, admin), 1))
	c.run(file)
	const put = "were changed to match them"
	for i, edit := range []struct{ method, path, body, log string }{
		{http.MethodDelete, "http/servers/web", "", `"web: use the option http"`},
		{http.MethodPatch, "http/servers/web/listener_wrappers", "[]",
			`"web.listener_wrappers: use listener_wrappers of the global option servers"`},
		{http.MethodPatch, "http/servers/web", fmt.Sprintf(`{"listen":[%q]}`, c.http),
			`"web.routes: use a chain, or a site with the k8singress directive"`},
		{http.MethodPatch, "k8singress/server_names", `{"http":"other"}`, ""},
		{http.MethodPatch, "http/servers/other/listener_wrappers", "[]",
			`"other.listener_wrappers: use listener_wrappers of the global option servers"`},
	} {
		name := edit.method + " " + edit.path + " " + edit.body
		status := c.edits(edit.method, "http://"+admin+"/config/apps/"+edit.path, edit.body)
		if status != http.StatusOK {
			t.Fatalf("%s gets %d", name, status)
		}
		c.becomes(name+" is undone", func() error {
			if edit.log == "" {
				return c.edited("http://" + admin + "/config/apps/http/servers/other")
			}
			return c.logs(edit.log, "1")
		})
		c.becomes("behind a load balancer", c.servesBehindProxy)
		if err := c.probe("/readyz", http.StatusOK); err != nil {
			t.Errorf("%d: %v", i, err)
		}
	}
	if err := c.logs(put, "4"); err != nil {
		t.Error(err)
	}
}

// edits sends a request to the admin API and returns the status.
func (c *controller) edits(method, url, body string) int {
	c.Helper()
	request, err := http.NewRequestWithContext(c.Context(), method, url, strings.NewReader(body))
	if err != nil {
		c.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
	if err != nil {
		c.Fatal(err)
	}
	defer response.Body.Close()
	return response.StatusCode
}

// edited returns an error if a part of the configuration does not exist.
func (c *controller) edited(url string) error {
	response, err := http.Get(url)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && strings.TrimSpace(string(text)) == "null" {
		err = fmt.Errorf("%s does not exist", url)
	}
	return err
}

// servesBehindProxy returns an error unless a request with a PROXY protocol header gets 200, and one with headers of
// more than 2 KB gets 431.
func (c *controller) servesBehindProxy() error {
	for header, want := range map[string]int{"": http.StatusOK, strings.Repeat("x", 3000): 431} {
		conn, err := net.DialTimeout("tcp", c.http, prompt)
		if err != nil {
			return err
		}
		defer conn.Close()
		if err := conn.SetDeadline(time.Now().Add(prompt)); err != nil {
			return err
		}
		fmt.Fprintf(conn, "PROXY TCP4 192.0.2.1 192.0.2.2 1234 80\r\n"+
			"GET / HTTP/1.1\r\nHost: h\r\nX-Long: %s\r\n\r\n", header)
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			return err
		}
		if response.Body.Close(); response.StatusCode != want {
			return fmt.Errorf("%d bytes get %s, want %d", len(header), response.Status, want)
		}
	}
	return nil
}
