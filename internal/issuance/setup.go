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

	"github.com/k8singress/k8singress/internal/tlssecret"
)

// Options of a Manager.
type Options struct {
	// Issuers are modules of Caddy's namespace tls.issuance; none are those that Caddy has by default.
	Issuers []json.RawMessage
	// KeyType is that of new keys, as Caddy names it; empty is Caddy's default.
	KeyType string
	// HTTP and HTTPS are the addresses that this process answers challenges at.
	HTTP, HTTPS []string
	// NewHostsPerDay is for how many new names of one namespace issuers are asked in 24 hours. Zero is no bound.
	NewHostsPerDay int
	// Addresses are those that clients reach this controller at, as IP addresses or names. Nil asks issuers for all names, wherever
	// they lead; otherwise for those that lead to one of the addresses.
	Addresses func() []string
	// Resolvers are the DNS servers for that, with or without a port; empty means those of the system.
	Resolvers []string
}

// setup is what certificates are asked with, under one Caddy configuration. But for what is counted, it is immutable.
type setup struct {
	storage certmagic.Storage
	issuers []*issuer
	// mark tells these issuers, and all that the administrator says of them, from others.
	mark string
	// config is the one that the issuers know. Each attempt has a copy, with a log of its own.
	config *certmagic.Config
	// pauses has, by the key of an issuer, the newest pause that it asked for.
	pauses sync.Map
	// retry is how long a host waits after its first failure.
	retry time.Duration
	// newHostsPerDay and addresses are those of Options.
	newHostsPerDay int
	addresses      func() []string
	resolver       *net.Resolver

	cache       *certmagic.Cache
	unsubscribe func()
	cancel      func()
	// users counts the work under way, and one more while it is current. At zero it is cleaned up.
	users atomic.Int64
}

// subscriber is a storage that reports each key whose value changes, also by other replicas.
type subscriber interface {
	Subscribe(func(key string)) (unsubscribe func())
}

// challengeStorage is a storage that looks up unknown challenge tokens only for hosts that may be challenged.
type challengeStorage interface {
	SetWanted(func(host string) bool)
}

// renewCheck is how precisely renewals are on time. certmagic renews a certificate by so much before the time it chose, and
// by five times as much before the certificate expires.
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
		// Nothing is ever in it: certmagic wants one.
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

// provision makes the issuers.
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

// without leaves a field out of an object, as Caddy does with the name of a module before it decodes strictly.
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

// acquire keeps the setup until release. It is to be current: its last user is who replaces it.
func (s *setup) acquire() { s.users.Add(1) }

// release is not to be called with the lock of the manager: a storage that tells of a key wants it.
func (s *setup) release() {
	if s.users.Add(-1) == 0 {
		s.unsubscribe()
		s.cache.Stop()
		s.cancel()
	}
}

// paced says whether orders go to an authority that wants few of them in a short time.
func (s *setup) paced() bool {
	return len(s.issuers) > 0 && s.issuers[0].module != nil
}

// load reads the newest certificate for a host that one of the issuers has given; nil when there is none. An error is about
// a certificate that cannot be read, where no other can.
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
	pair, err := tlssecret.Parse(parts[0], parts[1])
	if err != nil {
		return nil, fmt.Errorf("the certificate %s in the storage cannot be read: %w", keys[0], err)
	}
	return &issued{pair: pair, issuerKey: issuer, renewal: renewalOf(pair.Leaf, parts[2])}, nil
}
