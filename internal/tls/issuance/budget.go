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

// budgetsFolder is the storage folder with, for each namespace, the new names of the last day.
const budgetsFolder = "k8singress/budgets/"

// budgetPeriod is how long an ordered name uses up the budget of its namespace.
const budgetPeriod = 24 * time.Hour

// budgets limit the number of new names per namespace for which certificates are ordered in a day. Certificate
// authorities limit the orders of an account, and a namespace that keeps replacing its hosts would use up that limit
// for all. A name that already has a certificate, or was ordered within that time, is not new. The names are in the
// storage, so that neither a restart nor another replica resets the limit. Only the leader writes them.
type budgets struct {
	mu sync.Mutex
	of map[string]*budget
}

// budget is the budget of one namespace.
type budget struct {
	mu   sync.Mutex
	read bool
	// names maps the hash of each name to the time of its first order, in Unix seconds.
	names map[string]int64
}

// storedBudget is the stored form of a budget.
type storedBudget struct {
	Names map[string]int64 `json:"names"`
}

// forget drops all budgets from memory, so that they are read again. Another replica may have changed them in the
// storage.
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

// newName is a name without a certificate, with the namespace that requests it.
type newName struct{ namespace, name string }

// spend takes a new name from the budget of its namespace, which allows limit names. If the budget is used up, it
// returns a failure with the reason and the time of the next attempt. An error is about the storage and must not
// prevent the order.
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
				"name a Secret with a certificate, or have the administrator raise new_hosts_per_day", len(one.names),
			n.namespace)}, nil
	}
	one.names[key] = now.Unix()
	return nil, remember(ctx, s, budgetKey(n.namespace), storedBudget{one.names})
}
