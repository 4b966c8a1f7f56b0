package issuance

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/caddyserver/certmagic"

	"github.com/k8singress/k8singress/internal/tlssecret"
)

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
