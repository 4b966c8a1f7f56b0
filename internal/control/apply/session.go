package apply

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/caddyserver/caddy/v2"
)

// configPath is the path of the whole configuration in Caddy's admin API.
const configPath = "/config/"

// processPath is the path in the admin API at which this process returns processToken.
const processPath = "/k8singress/process"

// processToken is a random string that identifies this process. Another process can know it only if it may read the
// admin API of this process.
var processToken = rand.Text()

// ProcessRoute returns an admin API route that returns processToken. A client in this process uses it to verify that it
// is connected to this process. The server sends the token to the client, not the other way round, because another
// process at the address could accept any token.
func ProcessRoute() caddy.AdminRoute {
	return caddy.AdminRoute{Pattern: "GET " + processPath, Handler: caddy.AdminHandlerFunc(
		func(w http.ResponseWriter, _ *http.Request) error {
			_, err := io.WriteString(w, processToken)
			return err
		},
	)}
}

// setAdmin says which setting is wrong if the address of the admin API is.
const setAdmin = "set \"admin\" of the app k8singress to the address in \"listen\" of \"admin\" in the configuration"

// ErrAnotherProcess means that the admin API at the address belongs to another process.
var ErrAnotherProcess = errors.New("another process responds at this address, so its configuration is not changed; " +
	setAdmin + ", and give each process its own admin address")

// ErrNoAdmin means that no process listens at the address of the admin API.
var ErrNoAdmin = errors.New("no process listens at this address; " + setAdmin)

// session is one connection to the admin API. All requests of a session use the connection that verify has checked:
// several processes may listen on the same address, and a new connection might reach another process.
type session struct {
	*Admin
	client    *http.Client
	transport *http.Transport
}

var errConnectionLost = fmt.Errorf("%w: the connection was closed", errChanged)

// newSession returns a session that opens its connection with the first request. If the connection ends, all further
// requests of the session fail with errChanged.
func (a *Admin) newSession() *session {
	dialer, dialled := &net.Dialer{}, atomic.Bool{}
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		if dialled.Swap(true) {
			return nil, errConnectionLost
		}
		return dialer.DialContext(ctx, a.address.Network, a.address.JoinHostPort(0))
	}}
	// Redirects are not followed, because Caddy never redirects these requests.
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &session{a, &http.Client{Transport: transport, CheckRedirect: stay, Timeout: adminTimeout}, transport}
}

func (s *session) close() { s.transport.CloseIdleConnections() }

// verify returns an error if the server at the other end of the connection is not this process.
func (s *session) verify(ctx context.Context) error {
	response, err := s.request(ctx, http.MethodGet, processPath, nil, "")
	switch {
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("the admin API at %s: %w", s.address, ErrNoAdmin)
	case err != nil:
		return fmt.Errorf("finding the admin API of this process: %w", err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxMessage))
	switch {
	case err != nil:
		return fmt.Errorf("finding the admin API of this process: %w", err)
	case response.StatusCode == http.StatusForbidden:
		return refusal(response, answer)
	case response.StatusCode != http.StatusOK || string(answer) != processToken:
		return fmt.Errorf("the admin API at %s: %w", s.address, ErrAnotherProcess)
	}
	return nil
}

func (s *session) get(ctx context.Context) (config []byte, etag string, err error) {
	response, err := s.do(ctx, http.MethodGet, nil, "")
	if err != nil {
		return nil, "", err
	}
	defer response.Body.Close()
	config, err = io.ReadAll(io.LimitReader(response.Body, maxConfig))
	return config, response.Header.Get("Etag"), err
}

func (s *session) post(ctx context.Context, config []byte, etag string) error {
	response, err := s.do(ctx, http.MethodPost, config, etag)
	if err != nil {
		return fmt.Errorf("posting the configuration: %w", err)
	}
	return response.Body.Close()
}

// do sends a request for the path of the whole configuration. It returns an error if the status code is 300 or more.
func (s *session) do(ctx context.Context, method string, body []byte, etag string) (*http.Response, error) {
	response, err := s.request(ctx, method, configPath, body, etag)
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
	message, _ := io.ReadAll(io.LimitReader(response.Body, maxMessage))
	return nil, refusal(response, message)
}

// maxMessage is the maximum number of bytes that are read from the body of an error response.
const maxMessage = 4 << 10

func refusal(response *http.Response, message []byte) error {
	return fmt.Errorf("caddy responded with %s: %s", response.Status, strings.TrimSpace(string(message)))
}

// request sends a request. If Caddy rejects it with 403, request sends it again with an Origin header.
func (s *session) request(ctx context.Context, method, path string, body []byte, etag string) (*http.Response, error) {
	response, err := s.send(ctx, method, path, body, map[string]string{"If-Match": etag})
	if err != nil || response.StatusCode != http.StatusForbidden {
		return response, err
	}
	// With enforce_origin, Caddy requires the Origin header. Without it, Caddy still compares an Origin header with a
	// list of allowed origins, which lacks the addresses of Unix sockets and of some interfaces. So the header is sent
	// only if Caddy has rejected the request without it. The body must be read so that the connection can be reused.
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, maxMessage))
	response.Body.Close()
	return s.send(ctx, method, path, body, map[string]string{"If-Match": etag, "Origin": "http://" + s.host()})
}

// send sends a request. Headers with an empty value are omitted.
func (s *session) send(ctx context.Context, method, path string, body []byte,
	headers map[string]string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, "http://"+s.host()+path, bytes.NewReader(body))
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
	response, err := s.client.Do(request)
	if dropped(err) {
		return nil, fmt.Errorf("%w: %w", errChanged, err)
	}
	return response, err
}

// dropped reports whether a connection ended without a response. When Caddy loads a configuration, it closes the
// listener of the previous configuration, with all connections that wait for a response. The caller must then read the
// configuration to find out whether Caddy has loaded the posted one.
func dropped(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}
