package issuance

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/caddyserver/certmagic"
)

// budgetsFolder is a folder in the storage with one file for each namespace. The file lists the new host names for
// which the namespace has ordered certificates in the last 24 hours.
const budgetsFolder = "k8singress/budgets/"

// budgetPeriod is how long a new host name counts towards the limit of its namespace.
const budgetPeriod = 24 * time.Hour

// budgets limits the number of new host names per day for which a namespace may order certificates. Certificate
// authorities limit the number of orders of an account: without budgets, a namespace that keeps replacing its hosts
// could use up this limit for all namespaces. A name is not new if it already has a certificate, or if it was first
// ordered less than a day ago. The names are kept in the storage, so that a restart or a change of the leader does not
// reset the count. Only the leader writes them.
type budgets struct {
	mu sync.Mutex
	of map[string]*budget
}

// budget records the host names of one namespace for which a certificate was first ordered in the last 24 hours, in
// order to limit their number.
type budget struct {
	mu   sync.Mutex
	read bool
	// names maps the hash of a host name to the time when a certificate was first ordered for it, in Unix seconds.
	names map[string]int64
}

// storedBudget is the JSON form of a budget in the storage.
type storedBudget struct {
	Names map[string]int64 `json:"names"`
}

// forget discards the budgets in memory, so that they are read from the storage again. This is necessary if another
// replica may have changed them in the storage.
func (b *budgets) forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.of = nil
}

func (b *budgets) get(namespace string) *budget {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.of == nil {
		b.of = map[string]*budget{}
	}
	if b.of[namespace] == nil {
		b.of[namespace] = &budget{}
	}
	return b.of[namespace]
}

func budgetKey(namespace string) string {
	return budgetsFolder + certmagic.StorageKeys.Safe(namespace) + ".json"
}

// newName is a host name without a certificate, and the namespace that requests a certificate for it.
type newName struct{ namespace, name string }

// spend counts a new host name towards the daily limit of its namespace. It returns nil if a certificate may be ordered
// for the name. If the namespace has reached the limit, it returns a failure that contains the reason and the time of
// the next attempt. The second result is an error of the storage; the caller may then order the certificate anyway.
func (b *budgets) spend(ctx context.Context, s certmagic.Storage, n newName, limit int,
	now time.Time) (*failure, error) {
	one := b.get(n.namespace)
	one.mu.Lock()
	defer one.mu.Unlock()
	if !one.read {
		var stored storedBudget
		if _, err := recall(ctx, s, budgetKey(n.namespace), &stored); err != nil {
			return nil, err
		}
		one.read, one.names = true, stored.Names
	}
	if one.names == nil {
		one.names = map[string]int64{}
	}
	maps.DeleteFunc(one.names, func(_ string, at int64) bool { return now.Sub(time.Unix(at, 0)) >= budgetPeriod })
	sum := sha256.Sum256([]byte(n.name))
	key := hex.EncodeToString(sum[:8])
	if _, known := one.names[key]; known {
		return nil, nil
	}
	if len(one.names) >= limit {
		first := time.Unix(slices.Min(slices.Collect(maps.Values(one.names))), 0)
		return &failure{NotBefore: first.Add(budgetPeriod), Reason: fmt.Sprintf(
			"certificates were requested for %d new names of the namespace %s within 24 hours, which is the limit: "+
				"use a Secret with a certificate, or ask the administrator to raise new_hosts_per_day", len(one.names),
			n.namespace)}, nil
	}
	one.names[key] = now.Unix()
	return nil, remember(ctx, s, budgetKey(n.namespace), storedBudget{one.names})
}
