package k8singress_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// patience is how long a test waits for an expected event.
const patience = fixture.Patience

// process is a Caddy with an admin API, in this process or another one.
type process struct {
	testing.TB
	address string
	admin   caddy.NetworkAddress
	client  *http.Client
}

// start runs Caddy with an admin API at address. apps is JSON.
func start(t testing.TB, address, apps string) *process {
	t.Helper()
	p := processAt(t, address)
	config := fmt.Sprintf(`{"admin":{"listen":%q,"config":{"persist":false}},"apps":%s}`, address, apps)
	if err := caddy.Load([]byte(config), true); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := caddy.Stop(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// processAt returns the process whose admin API is at address.
func processAt(t testing.TB, address string) *process {
	t.Helper()
	parsed, err := caddy.ParseNetworkAddress(address)
	if err != nil {
		t.Fatal(err)
	}
	// The part after "|" is the mode of the socket file.
	parsed.Host, _, _ = strings.Cut(parsed.Host, "|")
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, parsed.Network, parsed.JoinHostPort(0))
	}
	// Loading a configuration closes the connections of the admin API, so each request uses a new connection.
	client := &http.Client{Timeout: patience, Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
	return &process{t, address, parsed, client}
}

// socket returns an admin address that no other test uses.
func socket(t testing.TB) string { return "unix/" + filepath.Join(t.TempDir(), "admin.sock") }

// reply is the response to a request.
type reply struct {
	status int
	header http.Header
	body   string
}

// ask sends a request to a route of the admin API. It retries on connection errors, because loading a configuration
// drops connections that have not been accepted yet. All requests of these tests may be repeated.
func (p *process) ask(method, route, body string) (answer reply) {
	p.Helper()
	try := func() (err error) {
		request, err := http.NewRequestWithContext(p.Context(), method, p.url(route), strings.NewReader(body))
		if err != nil {
			p.Fatal(err)
		}
		answer, err = p.do(request)
		return err
	}
	p.eventually(method+" "+route, try)
	return answer
}

// url returns the URL of a route below /k8singress/, or of a path that starts with a slash.
func (p *process) url(route string) string {
	if !strings.HasPrefix(route, "/") {
		route = "/k8singress/" + route
	}
	if p.admin.IsUnixNetwork() {
		return "http://127.0.0.1" + route
	}
	return "http://" + p.admin.JoinHostPort(0) + route
}

func (p *process) do(request *http.Request) (reply, error) {
	response, err := p.client.Do(request)
	if err != nil {
		return reply{}, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return reply{response.StatusCode, response.Header, string(text)}, err
}

// eventually fails the test if condition keeps returning an error.
func (p *process) eventually(what string, condition func() error) {
	p.Helper()
	fixture.Eventually(p, what, condition)
}
