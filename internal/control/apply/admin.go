package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
)

const (
	// adminTimeout is the timeout of one request to the admin API. It is long because Caddy responds only after the
	// apps of the previous configuration have stopped.
	adminTimeout = 30 * time.Second
	// conflicts is the maximum number of attempts to change the configuration while other clients of the admin API
	// change it too.
	conflicts = 5
	// maxConfig is the maximum size of a configuration in bytes, the same as in Caddy.
	maxConfig = 100 << 20
)

// Admin changes the configuration of this process through Caddy's admin API.
type Admin struct {
	address caddy.NetworkAddress
}

// NewAdmin returns a client for an admin address in Caddy's format, such as "localhost:2019" or "unix//run/caddy". The
// address may contain placeholders for environment variables.
func NewAdmin(address string) (*Admin, error) {
	resolved, err := caddy.NewReplacer().ReplaceOrErr(address, true, true)
	if err != nil {
		return nil, fmt.Errorf("parsing the admin address %q: %w", address, err)
	}
	parsed, err := caddy.ParseNetworkAddressWithDefaults(resolved, "tcp", 2019)
	if err != nil {
		return nil, fmt.Errorf("parsing the admin address %q: %w", address, err)
	}
	if parsed.IsUnixNetwork() {
		// In the address of a Unix socket, the part after "|" is the mode of the socket file. Remove it.
		parsed.Host, _, _ = strings.Cut(parsed.Host, "|")
	}
	return &Admin{address: parsed}, nil
}

var errChanged = errors.New("another client changed the configuration at the same time")

// Change reads the whole configuration and calls merge to edit it. If the result differs, Change posts it, which makes
// Caddy load it. If another client changes the configuration in the meantime, Change starts again. It reports whether
// it posted a configuration.
//
// Change writes only to this process. If another process listens at the address, it returns an error that wraps
// ErrAnotherProcess.
func (a *Admin) Change(ctx context.Context, merge func(config map[string]any) error) (bool, error) {
	for try := 1; ; try++ {
		changed, err := a.tryChange(ctx, merge)
		if try == conflicts || !errors.Is(err, errChanged) {
			return changed, err
		}
	}
}

func (a *Admin) tryChange(ctx context.Context, merge func(map[string]any) error) (bool, error) {
	s := a.newSession()
	defer s.close()
	if err := s.verify(ctx); err != nil {
		return false, err
	}
	raw, etag, err := s.get(ctx)
	if err != nil {
		return false, fmt.Errorf("reading the configuration: %w", err)
	}
	before, after := map[string]any{}, map[string]any{}
	for _, into := range []*map[string]any{&before, &after} {
		if err := json.Unmarshal(raw, into); err != nil {
			return false, fmt.Errorf("decoding the configuration: %w", err)
		}
		if *into == nil {
			// The admin API returns null if Caddy has no configuration.
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
	return true, s.post(ctx, body, etag)
}

// host returns the value of the Host header for requests to the admin API.
func (a *Admin) host() string {
	if a.address.IsUnixNetwork() {
		return "127.0.0.1"
	}
	return a.address.JoinHostPort(0)
}
