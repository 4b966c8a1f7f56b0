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

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/process/events"
	"github.com/k8singress/k8singress/internal/tls/secret"
)

// Options configures a Manager.
type Options struct {
	// Issuers are the configurations of Caddy modules in the namespace tls.issuance. If empty, Caddy's default issuers
	// are used.
	Issuers []json.RawMessage
	// KeyType is the type of new private keys, such as "p256" (see Caddy's key_type). If empty, Caddy's default is
	// used. It may contain placeholders.
	KeyType string
	// RenewalRatio is the part of a certificate's lifetime that is left when the certificate is renewed. If zero,
	// certmagic's default is used.
	RenewalRatio float64
	// RenewInterval is the interval between checks for renewals (see Caddy's renew_interval). If it is shorter than a
	// minute, it is a minute.
	RenewInterval time.Duration
	// HTTP and HTTPS are the listen addresses at which this process handles ACME challenges.
	HTTP, HTTPS []string
	// NewHostsPerDay is the maximum number of new host names per namespace for which certificates are ordered within 24
	// hours. Zero means no limit.
	NewHostsPerDay int
	// Addresses returns the addresses at which clients reach this controller, as IP addresses or host names.
	// Certificates are then ordered only for hosts that resolve to one of these addresses. If Addresses is nil, hosts
	// are not checked.
	Addresses func() []string
	// Permission is the configuration of a Caddy module in the namespace tls.permission, which decides for which names
	// certificates are ordered on demand. If it is nil, no certificates are ordered on demand.
	Permission json.RawMessage
	// OnDemand returns the object that requests certificates on demand for a name. It returns false if no object does,
	// or if no issuer can issue a certificate for the name. It must be fast. It is not called if Permission is nil.
	OnDemand func(name string) (ir.Ref, bool)
	// Resolvers are the DNS servers, with or without a port, that are queried to check Addresses. If empty, the
	// system's DNS servers are used.
	Resolvers []string
	// Events emits certmagic's events about certificates (see also EmitLoaded). If it is nil, there are no events.
	Events *events.Bus
}

// setup contains what is needed to order certificates under one Caddy configuration, such as the issuers and the
// storage. It is immutable, except for pauses and users.
type setup struct {
	storage certmagic.Storage
	issuers []*issuer
	// mark is a hash of the configuration of the issuers. It changes if other issuers are configured.
	mark string
	// config is the certmagic configuration that contains the issuers. Each order uses a copy of config with its own
	// logger.
	config *certmagic.Config
	// pauses maps the key of an issuer to its latest pause: the issuer's rate limit for the orders of all hosts.
	pauses sync.Map
	// retry is the delay between the first failed order for a host and the next attempt.
	retry    time.Duration
	schedule schedule
	// newHostsPerDay and addresses are copied from the Options.
	newHostsPerDay int
	addresses      func() []string
	resolver       *net.Resolver
	// permission is nil if no certificates are ordered on demand. onDemand is copied from the Options.
	permission *permission
	onDemand   func(name string) (ir.Ref, bool)
	// replaced is closed when another configuration has taken effect.
	replaced chan struct{}
	// events is copied from the Options.
	events *events.Bus

	cache       *certmagic.Cache
	unsubscribe func()
	// notifies is true if the storage notifies the manager of changes.
	notifies bool
	cancel   func()
	// users is the reference count of the setup: each running task holds one reference, and the manager holds another
	// while it uses the setup. At zero, the setup is cleaned up.
	users atomic.Int64
}

// subscriber is implemented by storages that call a function with the key of each changed value, even if another
// replica has changed the value.
type subscriber interface {
	Subscribe(func(key string)) (unsubscribe func())
}

// challengeStorage is implemented by storages that look up an unknown challenge token only if a certificate may be on
// order for the host. SetWanted sets the function that reports this for a host.
type challengeStorage interface {
	SetWanted(func(host string) bool)
}

func newSetup(ctx caddy.Context, o Options, m *Manager) (*setup, error) {
	keyType, err := caddy.NewReplacer().ReplaceOrErr(o.KeyType, true, true)
	if err != nil {
		return nil, fmt.Errorf("the key type %q: %w", o.KeyType, err)
	}
	ctx, cancel := caddy.NewContext(ctx)
	issuers, permission, err := o.provision(ctx)
	if err != nil {
		cancel()
		return nil, err
	}
	s := &setup{
		permission: permission, onDemand: o.OnDemand, events: o.Events, replaced: make(chan struct{}),
		schedule: scheduleOf(o),
		mark:     markOf(o.Issuers), retry: m.retry, cancel: cancel,
		newHostsPerDay: o.NewHostsPerDay, addresses: o.Addresses, resolver: resolverOf(o.Resolvers),
	}
	s.cache = certmagic.NewCache(certmagic.CacheOptions{
		// certmagic requires this function, although the cache of certificates stays empty.
		GetConfigForCert:   func(certmagic.Certificate) (*certmagic.Config, error) { return s.config, nil },
		RenewCheckInterval: s.schedule.check, Logger: zap.NewNop(),
	})
	s.config = certmagic.New(s.cache, certmagic.Config{
		Storage: ctx.Storage(), Issuers: issuers, Logger: m.log,
		KeySource:           certmagic.StandardKeyGenerator{KeyType: certmagic.KeyType(keyType)},
		RenewalWindowRatio:  s.schedule.ratio,
		OCSP:                certmagic.OCSPConfig{DisableStapling: true},
		DisableStorageCheck: true,
		OnEvent:             certificateEvents(o.Events),
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
		s.notifies, s.unsubscribe = true, storage.Subscribe(m.onStorageEvent)
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

// provision loads the Caddy modules in the options.
func (o Options) provision(ctx caddy.Context) ([]certmagic.Issuer, *permission, error) {
	issuers, err := provisionIssuers(ctx, o.Issuers)
	if err != nil {
		return nil, nil, err
	}
	permission, err := newPermission(ctx, o.Permission)
	return issuers, permission, err
}

func provisionIssuers(ctx caddy.Context, modules []json.RawMessage) ([]certmagic.Issuer, error) {
	if len(modules) == 0 {
		return caddytls.DefaultIssuersProvisioned(ctx)
	}
	var all []certmagic.Issuer
	for _, raw := range modules {
		value, err := loadInline(ctx, "tls.issuance.", raw)
		if err != nil {
			return nil, fmt.Errorf("an issuer of certificates: %w", err)
		}
		all = append(all, value.(certmagic.Issuer))
	}
	return all, nil
}

// loadInline loads a Caddy module whose JSON object contains the name of the module in the field module. namespace is
// the prefix of the module's ID.
func loadInline(ctx caddy.Context, namespace string, raw json.RawMessage) (any, error) {
	var of struct {
		Module string `json:"module"`
	}
	if err := json.Unmarshal(raw, &of); err != nil {
		return nil, err
	}
	value, err := ctx.LoadModuleByID(namespace+of.Module, without(raw, "module"))
	if err != nil {
		return nil, fmt.Errorf("%q: %w", of.Module, err)
	}
	return value, nil
}

// without removes a field from a JSON object. It is used to remove the name of a module before the module's object is
// decoded, because unknown fields are rejected. Caddy does the same.
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

// acquire increments the reference count of the setup. It must only be called while the manager itself holds a
// reference, because the setup is cleaned up when the reference count is zero.
func (s *setup) acquire() { s.users.Add(1) }

// release decrements the reference count of the setup, and cleans it up at zero. The caller must not hold the manager's
// mutex, because the storage may call the manager, which takes the mutex.
func (s *setup) release() {
	if s.users.Add(-1) == 0 {
		s.unsubscribe()
		s.cache.Stop()
		s.cancel()
	}
}

// paced reports whether certmagic's rate limit for orders applies. This is the case if the first issuer uses ACME.
func (s *setup) paced() bool {
	return len(s.issuers) > 0 && s.issuers[0].module != nil
}

// load reads the certificates of a host from the storage, one for each issuer, and returns the newest one. If no
// certificate could be read, it returns nil, and an error if one of the reads has failed.
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
	return &issued{pair: pair, issuerKey: issuer, renewal: s.schedule.of(pair.Leaf, parts[2])}, nil
}
