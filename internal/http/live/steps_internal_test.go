package live

import (
	"fmt"
	"testing"

	"github.com/caddyserver/caddy/v2"

	"github.com/k8singress/k8singress/internal/http/filter"
)

// limited is a chain with a parameter: the zone of its rate limit.
const limited = `[{"handle":[{"handler":"k8singress_response_headers","set":[{"name":"X-A","value":"b"}]},` +
	`{"handler":"k8singress_rate_limit","requests_per_second":1,"burst":5,"status_code":503,"zone":"a/%s"},` +
	toEndpoints + `]}]`

const toEndpoints = `{"handler":"k8singress_proxy","connect_timeout":1,"read_timeout":1,"write_timeout":1,` +
	`"max_body":-1}`

// TestChainsShareSteps checks that chains share exactly their equal steps, and that a step without users is removed.
func TestChainsShareSteps(t *testing.T) {
	shared := newSharedSteps(filter.NewShared(nil, nil))
	ctx, cancel := caddy.NewContext(caddy.Context{Context: t.Context()})
	defer cancel()
	chainOf := func(source string) *chain {
		t.Helper()
		c := newChain(ctx, chainID{}, []byte(source), shared)
		if c.refused != nil {
			t.Fatal(c.refused)
		}
		return c
	}
	a, b := chainOf(fmt.Sprintf(limited, "a")), chainOf(fmt.Sprintf(limited, "b"))
	for n, same := range []bool{true, false, true} {
		if (a.current.Load().steps[n] == b.current.Load().steps[n]) != same {
			t.Errorf("step %d: shared is %v", n, !same)
		}
	}
	a.replace(nil)
	if c := chainOf(fmt.Sprintf(limited, "c")); c.current.Load().steps[0] != b.current.Load().steps[0] {
		t.Error("a step that a chain still has is made again")
	} else {
		c.replace(nil)
	}
	if b.replace(nil); shared.all.Len() != 0 {
		t.Errorf("%d steps stay that no chain has", shared.all.Len())
	}
	if c := newChain(ctx, chainID{}, []byte(`[{"handle":[`+toEndpoints+`,{"handler":"nothing"}]}]`),
		shared); c.refused == nil ||
		shared.all.Len() != 0 {
		t.Errorf("of a chain that is refused (%v) %d steps stay", c.refused, shared.all.Len())
	}
}

// TestOnlyHandlersOfCaddyNeedAContext checks that a chain that consists of filters is not provisioned again for a new
// configuration.
func TestOnlyHandlersOfCaddyNeedAContext(t *testing.T) {
	ctx, cancel := caddy.NewContext(caddy.Context{Context: t.Context()})
	defer cancel()
	for source, again := range map[string]bool{fmt.Sprintf(limited, "a"): false,
		`[{"handle":[{"handler":"static_response"}]}]`: true} {
		c := newChain(ctx, chainID{}, []byte(source), newSharedSteps(filter.NewShared(nil, nil)))
		if c.refused != nil {
			t.Fatal(c.refused)
		}
		before := c.current.Load()
		if _, err := c.provisionAgain(ctx); err != nil || (c.current.Load() != before) != again {
			t.Errorf("%s: provisioned again is %v, error %v", source, !again, err)
		}
	}
}
