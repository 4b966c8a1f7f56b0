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
	// adminTimeout bounds one request. Loading a configuration waits for the apps of the old one to stop.
	adminTimeout = 30 * time.Second
	// conflicts is how often a change is tried again because another client of the API was faster.
	conflicts = 5
	// maxConfig is the size of the largest configuration that Caddy itself takes.
	maxConfig = 100 << 20
)

// Admin changes the configuration of this process through Caddy's admin API.
type Admin struct {
	address caddy.NetworkAddress
}

// NewAdmin returns a client for an admin address as Caddy writes them, such as "localhost:2019" or "unix//run/caddy". It may have
// placeholders of environment variables.
func NewAdmin(address string) (*Admin, error) {
	resolved, err := caddy.NewReplacer().ReplaceOrErr(address, true, true)
	if err != nil {
		return nil, fmt.Errorf("admin address %q: %w", address, err)
	}
	parsed, err := caddy.ParseNetworkAddressWithDefaults(resolved, "tcp", 2019)
	if err != nil {
		return nil, fmt.Errorf("admin address %q: %w", address, err)
	}
	if parsed.IsUnixNetwork() {
		// What follows a bar is the mode of the file.
		parsed.Host, _, _ = strings.Cut(parsed.Host, "|")
	}
	return &Admin{address: parsed}, nil
}

var errChanged = errors.New("another client changed the configuration at the same time")

// Change reads the whole configuration, lets merge change it, and posts it if it is another one then, which makes Caddy load it. When
// another client changes it meanwhile, all of this is done again. It returns whether it posted.
//
// Change writes to this process only. If another process answers at the address, it returns an error with ErrAnotherProcess.
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
	return true, s.post(ctx, body, etag)
}

// host returns the value of the Host header.
func (a *Admin) host() string {
	if a.address.IsUnixNetwork() {
		return "127.0.0.1"
	}
	return a.address.JoinHostPort(0)
}
