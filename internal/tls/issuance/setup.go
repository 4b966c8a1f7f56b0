package issuance

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddytls"
	"github.com/caddyserver/certmagic"
	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/tls/secret"
)

// Options configures a Manager.
type Options struct {
	// Issuers are modules of Caddy's namespace tls.issuance. If empty, Caddy's default issuers are used.
	Issuers []json.RawMessage
	// KeyType is the type of new keys, with Caddy's names. If empty, Caddy's default is used.
	KeyType string
	// HTTP and HTTPS are the addresses at which this process handles challenges.
	HTTP, HTTPS []string
	// NewHostsPerDay is the maximum number of new names of one namespace to order within 24 hours. Zero means no limit.
	NewHostsPerDay int
	// Addresses returns the addresses at which clients reach this controller, as IP addresses or names. Certificates
	// are then ordered only for names that resolve to one of them. If Addresses is nil, they are ordered for all names.
	Addresses func() []string
	// Resolvers are the DNS servers for that check, with or without a port. If empty, the system's servers are used.
	Resolvers []string
}

// setup holds everything that is needed for orders under one Caddy configuration. It is immutable except for pauses and
// users.
type setup struct {
	storage certmagic.Storage
	issuers []*issuer
	// mark identifies these issuers and their configuration.
	mark string
	// config is the configuration that the issuers were given. Each attempt uses a copy with its own logger.
	config *certmagic.Config
	// pauses maps the key of an issuer to the newest pause that it requested.
	pauses sync.Map
	// retry is the delay after the first failure of a host.
	retry time.Duration
	// newHostsPerDay and addresses are copied from Options.
	newHostsPerDay int
	addresses      func() []string
	resolver       *net.Resolver

	cache       *certmagic.Cache
	unsubscribe func()
	cancel      func()
	// users is the number of running tasks, plus one while the setup is current. At zero the setup is cleaned up.
	users atomic.Int64
}

// subscriber is implemented by a storage that reports each key whose value changes, including changes by other
// replicas.
type subscriber interface {
	Subscribe(func(key string)) (unsubscribe func())
}

// challengeStorage is implemented by a storage that looks up unknown challenge tokens only for hosts that may be
// challenged.
type challengeStorage interface {
	SetWanted(func(host string) bool)
}

// renewCheck is certmagic's check interval. certmagic renews a certificate this long before the time it chose, and no
// later than five times this long before the certificate expires.
const renewCheck = time.Minute

func newSetup(ctx caddy.Context, o Options, m *Manager) (*setup, error) {
	ctx, cancel := caddy.NewContext(ctx)
	issuers, err := provision(ctx, o.Issuers)
	if err != nil {
		cancel()
		return nil, err
	}
	s := &setup{
		mark: markOf(o.Issuers), retry: m.retry, cancel: cancel,
		newHostsPerDay: o.NewHostsPerDay, addresses: o.Addresses, resolver: resolverOf(o.Resolvers),
	}
	s.cache = certmagic.NewCache(certmagic.CacheOptions{
		// certmagic requires the function, but the cache stays empty.
		GetConfigForCert:   func(certmagic.Certificate) (*certmagic.Config, error) { return s.config, nil },
		RenewCheckInterval: renewCheck, Logger: zap.NewNop(),
	})
	s.config = certmagic.New(s.cache, certmagic.Config{
		Storage: ctx.Storage(), Issuers: issuers, Logger: m.log,
		KeySource:           certmagic.StandardKeyGenerator{KeyType: certmagic.KeyType(o.KeyType)},
		OCSP:                certmagic.OCSPConfig{DisableStapling: true},
		DisableStorageCheck: true,
	})
	s.storage = s.config.Storage
	listening := listeningAt(o)
	for _, i := range issuers {
		if c, ok := i.(caddytls.ConfigSetter); ok {
			c.SetConfig(s.config)
		}
		s.issuers = append(s.issuers, newIssuer(i, listening, m.log))
	}
	s.unsubscribe = func() {}
	if storage, ok := s.storage.(subscriber); ok {
		s.unsubscribe = storage.Subscribe(m.onStorageEvent)
	}
	if storage, ok := s.storage.(challengeStorage); ok {
		storage.SetWanted(m.mayBeChallenged)
	}
	s.users.Store(1)
	return s, nil
}

func markOf(issuers []json.RawMessage) string {
	sum := sha256.New()
	for _, raw := range issuers {
		fmt.Fprintf(sum, "%d %s", len(raw), raw)
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}

// provision loads the issuers.
func provision(ctx caddy.Context, modules []json.RawMessage) ([]certmagic.Issuer, error) {
	if len(modules) == 0 {
		return caddytls.DefaultIssuersProvisioned(ctx)
	}
	var all []certmagic.Issuer
	for _, raw := range modules {
		var of struct {
			Module string `json:"module"`
		}
		if err := json.Unmarshal(raw, &of); err != nil {
			return nil, fmt.Errorf("an issuer of certificates: %w", err)
		}
		value, err := ctx.LoadModuleByID("tls.issuance."+of.Module, without(raw, "module"))
		if err != nil {
			return nil, fmt.Errorf("the issuer of certificates %q: %w", of.Module, err)
		}
		all = append(all, value.(certmagic.Issuer))
	}
	return all, nil
}

// without removes a field from a JSON object, as Caddy does with the name of a module before it decodes the object
// strictly.
func without(raw json.RawMessage, field string) json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return raw
	}
	delete(fields, field)
	rest, err := json.Marshal(fields)
	if err != nil {
		return raw
	}
	return rest
}

// acquire keeps the setup alive until release is called. The setup must be current: otherwise it may already be cleaned
// up.
func (s *setup) acquire() { s.users.Add(1) }

// release must not be called with the manager's lock held, because a storage that reports a key takes that lock.
func (s *setup) release() {
	if s.users.Add(-1) == 0 {
		s.unsubscribe()
		s.cache.Stop()
		s.cancel()
	}
}

// paced reports whether orders go to an authority with a rate limit, that is, by ACME.
func (s *setup) paced() bool {
	return len(s.issuers) > 0 && s.issuers[0].module != nil
}

// load returns the newest certificate that one of the issuers has issued for a host, or nil. It returns an error only
// if there is no readable certificate and one could not be read.
func (s *setup) load(ctx context.Context, h *host) (*issued, error) {
	var newest *issued
	var failed error
	for _, i := range s.issuers {
		found, err := s.loadFrom(ctx, i.key, h)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			failed = err
		case newest == nil || newest.pair.Leaf.NotBefore.Before(found.pair.Leaf.NotBefore):
			newest = found
		}
	}
	if newest != nil {
		return newest, nil
	}
	return nil, failed
}

func (s *setup) loadFrom(ctx context.Context, issuer string, h *host) (*issued, error) {
	keys := []string{
		certmagic.StorageKeys.SiteCert(issuer, h.subject), certmagic.StorageKeys.SitePrivateKey(issuer, h.subject),
		certmagic.StorageKeys.SiteMeta(issuer, h.subject),
	}
	parts := make([][]byte, len(keys))
	for n, key := range keys {
		data, err := s.storage.Load(ctx, key)
		if err != nil {
			return nil, fmt.Errorf("reading %s from the storage: %w", key, err)
		}
		parts[n] = data
	}
	pair, err := secret.Parse(parts[0], parts[1])
	if err != nil {
		return nil, fmt.Errorf("the certificate %s in the storage cannot be read: %w", keys[0], err)
	}
	return &issued{pair: pair, issuerKey: issuer, renewal: renewalOf(pair.Leaf, parts[2])}, nil
}
