package k8singress_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/control/structure"
	"github.com/k8singress/k8singress/internal/model/document"
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

// TestServersPutBack checks that the server for HTTP keeps what Caddy's global option servers has set for it if a
// client of the admin API deletes or renames it, and that the log names the options to use. A server that the client
// replaces does not trust the proxies of the server before, and a site can have the name that our server had before.
func TestServersPutBack(t *testing.T) {
	c, admin := newController(t), fixture.Address(t)
	file := filepath.Join(t.TempDir(), "Caddyfile")
	text := c.caddyfile("manifests " + c.manifests(newOrigin(t)))
	c.write(file, strings.Replace(text, "{\nadmin off\n", fmt.Sprintf(putBackCaddyfile, c.http, admin), 1))
	c.run(file)
	const put = "were changed to match them"
	for i, edit := range []struct {
		method, path, body, log string
		status                  int
	}{
		{http.MethodDelete, "http/servers/web", "", `"web: use the option http"`, http.StatusOK},
		{http.MethodPatch, "k8singress/server_names", `{"http":"other"}`, "", http.StatusOK},
		{http.MethodPatch, "http/servers/other", fmt.Sprintf(`{"listen":[%q]}`, c.http),
			`"other.listener_wrappers: lost until the next reload of the Caddyfile"`, http.StatusBadRequest},
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
		c.becomes("behind a load balancer", func() error { return c.servesBehindProxy(edit.status) })
		if err := c.probe("/readyz", http.StatusOK); err != nil {
			t.Errorf("%d: %v", i, err)
		}
	}
	c.keepsSite(admin, "other")
	if err := c.logs(put, "3"); err != nil {
		t.Error(err)
	}
}

// keepsSite loads a configuration in which our server has its default name and lacks a limit, and a site has the given
// name, which our server had before. It checks that the limit is put back, and that the site is kept.
func (c *controller) keepsSite(admin, name string) {
	c.Helper()
	config, site := c.configuration(admin), fixture.Address(c)
	servers := structure.Branch(config, "apps", "http", "servers")
	delete(structure.Branch(config, "apps", "k8singress"), "server_names")
	servers[structure.HTTPServer] = servers[name]
	delete(structure.Branch(servers, structure.HTTPServer), "max_header_bytes")
	servers[name] = map[string]any{"listen": []any{site}, "routes": []any{map[string]any{
		"handle": []any{map[string]any{"handler": "static_response", "body": "site"}}}}}
	if status := c.edits(http.MethodPost, "http://"+admin+"/load", string(document.Encode(config))); status != 200 {
		c.Fatalf("/load gets %d", status)
	}
	c.becomes("a limit is put back", func() error { return c.logs(`"k8singress_http.max_header_bytes: `, "1") })
	c.becomes("the site is kept", func() error {
		status, body, err := c.get(http.DefaultClient, "http://"+site)
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("the site answers %d %v", status, body)
		}
		return err
	})
}

// configuration returns the running configuration of Caddy.
func (c *controller) configuration(admin string) (config map[string]any) {
	c.Helper()
	response, err := http.Get("http://" + admin + "/config/")
	if err != nil {
		c.Fatal(err)
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(&config); err != nil {
		c.Fatal(err)
	}
	return config
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

// servesBehindProxy returns an error unless a request with a PROXY protocol header gets the given status, and, if the
// status is 200, one with headers of more than 2 KB gets 431.
func (c *controller) servesBehindProxy(status int) error {
	statuses := map[string]int{"": status}
	if status == http.StatusOK {
		statuses[strings.Repeat("x", 3000)] = http.StatusRequestHeaderFieldsTooLarge
	}
	for header, want := range statuses {
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
