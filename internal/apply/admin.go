package apply

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"reflect"
	"strings"
	"syscall"
	"time"

	"github.com/caddyserver/caddy/v2"
)

const (
	// adminTimeout bounds one request. Loading a configuration waits for the apps of the old one to stop.
	adminTimeout = 30 * time.Second
	// conflicts is how often a change is tried again because another client of the API was faster.
	conflicts = 5
	// maxConfig is the size of the largest configuration that Caddy itself takes.
	maxConfig = 100 << 20
)

// Admin changes the configuration of Caddy through its admin API.
type Admin struct {
	address caddy.NetworkAddress
	client  *http.Client
}

// NewAdmin returns a client for an admin address as Caddy writes them, such as "localhost:2019" or "unix//run/caddy".
func NewAdmin(address string) (*Admin, error) {
	parsed, err := caddy.ParseNetworkAddressWithDefaults(address, "tcp", 2019)
	if err != nil {
		return nil, fmt.Errorf("admin address %q: %w", address, err)
	}
	if parsed.IsUnixNetwork() {
		// What follows a bar is the mode of the file.
		parsed.Host, _, _ = strings.Cut(parsed.Host, "|")
	}
	dialer := &net.Dialer{}
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return dialer.DialContext(ctx, parsed.Network, parsed.JoinHostPort(0))
	}}
	return &Admin{address: parsed, client: &http.Client{Transport: transport, Timeout: adminTimeout}}, nil
}

var errChanged = errors.New("somebody else changed the configuration at the same time")

// Change reads the whole configuration, lets merge change it, and posts it if it is another one then, which makes Caddy
// load it. When another client changes it meanwhile, all of this is done again. It returns whether it posted.
func (a *Admin) Change(ctx context.Context, merge func(config map[string]any) error) (bool, error) {
	for try := 1; ; try++ {
		changed, err := a.tryChange(ctx, merge)
		if try == conflicts || !errors.Is(err, errChanged) {
			return changed, err
		}
	}
}

func (a *Admin) tryChange(ctx context.Context, merge func(map[string]any) error) (bool, error) {
	raw, etag, err := a.get(ctx)
	if err != nil {
		return false, fmt.Errorf("reading the configuration: %w", err)
	}
	before, after := map[string]any{}, map[string]any{}
	for _, into := range []*map[string]any{&before, &after} {
		if err := json.Unmarshal(raw, into); err != nil {
			return false, fmt.Errorf("decoding the configuration: %w", err)
		}
		if *into == nil {
			// No configuration is null.
			*into = map[string]any{}
		}
	}
	if err := merge(after); err != nil {
		return false, err
	}
	if reflect.DeepEqual(before, after) {
		return false, nil
	}
	body, err := json.Marshal(after)
	if err != nil {
		return false, fmt.Errorf("encoding the configuration: %w", err)
	}
	return true, a.post(ctx, body, etag)
}

func (a *Admin) get(ctx context.Context) (config []byte, etag string, err error) {
	response, err := a.do(ctx, http.MethodGet, nil, "")
	if err != nil {
		return nil, "", err
	}
	defer response.Body.Close()
	config, err = io.ReadAll(io.LimitReader(response.Body, maxConfig))
	return config, response.Header.Get("Etag"), err
}

func (a *Admin) post(ctx context.Context, config []byte, etag string) error {
	response, err := a.do(ctx, http.MethodPost, config, etag)
	if err != nil {
		return fmt.Errorf("posting the configuration: %w", err)
	}
	return response.Body.Close()
}

// do returns a response with a good status only.
func (a *Admin) do(ctx context.Context, method string, body []byte, etag string) (*http.Response, error) {
	response, err := a.send(ctx, method, body, map[string]string{"If-Match": etag})
	if err == nil && response.StatusCode == http.StatusForbidden {
		// With enforce_origin Caddy wants an Origin. Without, it checks one that is there, against a list in which the
		// address of a socket, or that of one interface of many, does not stand.
		response.Body.Close()
		response, err = a.send(ctx, method, body, map[string]string{"If-Match": etag, "Origin": "http://" + a.host()})
	}
	if err != nil {
		return nil, err
	}
	if response.StatusCode < 300 {
		return response, nil
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusPreconditionFailed {
		return nil, errChanged
	}
	message, _ := io.ReadAll(io.LimitReader(response.Body, 4<<10))
	return nil, fmt.Errorf("caddy answers %s: %s", response.Status, strings.TrimSpace(string(message)))
}

// send leaves out headers without a value.
func (a *Admin) send(ctx context.Context, method string, body []byte, headers map[string]string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, "http://"+a.host()+"/config/", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	for name, value := range headers {
		if value != "" {
			request.Header.Set(name, value)
		}
	}
	response, err := a.client.Do(request)
	if dropped(err) {
		return nil, fmt.Errorf("%w: %w", errChanged, err)
	}
	return response, err
}

// dropped says that a connection ended without an answer. Caddy has just loaded a configuration then, and given up the
// listener of the one before with all that waited for it. Should it have been the one that was posted, reading it again
// shows that.
func dropped(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

func (a *Admin) host() string {
	if a.address.IsUnixNetwork() {
		return "127.0.0.1"
	}
	return a.address.JoinHostPort(0)
}

// Close ends idle connections.
func (a *Admin) Close() { a.client.CloseIdleConnections() }
