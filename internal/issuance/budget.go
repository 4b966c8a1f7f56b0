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

// budgetsFolder has, for each namespace, the new names of the last day.
const budgetsFolder = "k8singress/budgets/"

// budgetPeriod is how long a name counts that an issuer was asked for.
const budgetPeriod = 24 * time.Hour

// budgets bound for how many new names of each namespace issuers are asked in a day: authorities count the orders of an account, and
// a namespace that replaces its hosts all the time would use them up for all. A name that has a certificate, or has been asked for in
// that time, is not new. The storage has the names, so that neither a restart nor another replica begins anew; only the one that leads
// writes there.
type budgets struct {
	mu sync.Mutex
	of map[string]*budget
}

// budget is that of one namespace.
type budget struct {
	mu   sync.Mutex
	read bool
	// names are by the sum of the name, with the time when an issuer was asked first, in seconds.
	names map[string]int64
}

// storedBudget is what the storage has of a budget.
type storedBudget struct {
	Names map[string]int64 `json:"names"`
}

// forget makes the budgets read again: another replica may have written to them.
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

// newName is a name without a certificate, and the namespace that wants one.
type newName struct{ namespace, name string }

// spend takes a new name from the budget of its namespace, which is so many names. Where that has no room, it says why, and until when; an error is
// about the storage, and keeps nothing from being asked for.
func (b *budgets) spend(ctx context.Context, s certmagic.Storage, n newName, most int, now time.Time) (*failure, error) {
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
	if len(one.names) >= most {
		first := time.Unix(slices.Min(slices.Collect(maps.Values(one.names))), 0)
		return &failure{NotBefore: first.Add(budgetPeriod), Reason: fmt.Sprintf(
			"issuers were asked for %d new names of the namespace %s within 24 hours, and that is the most: name a Secret, or let the "+
				"administrator raise new_hosts_per_day", len(one.names), n.namespace)}, nil
	}
	one.names[key] = now.Unix()
	return nil, remember(ctx, s, budgetKey(n.namespace), storedBudget{one.names})
}
