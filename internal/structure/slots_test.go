package structure_test

import (
	"fmt"
	"testing"

	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/structure"
)

// sets returns handshakes with one made-up cipher each, numbered from first on.
func sets(first, n int) structure.Slots {
	var all structure.Slots
	for i := range n {
		all = append(all, ir.TLSPolicy{Ciphers: []string{fmt.Sprint("CIPHER_", first+i)}}.Effective(false))
	}
	return all
}

// TestSlots: what is there stays, so that a host that comes and goes is no reload; what is too much is left out, and takes
// nothing away from those that came before.
func TestSlots(t *testing.T) {
	for name, c := range map[string]struct {
		have, wanted structure.Slots
		next, left   int
	}{
		"none":                        {nil, nil, 0, 0},
		"the first":                   {nil, sets(0, 1), 1, 0},
		"the same again":              {sets(0, 2), sets(1, 1), 2, 0},
		"nobody wants it":             {sets(0, 2), nil, 2, 0},
		"full":                        {sets(0, structure.MaxSlots), sets(0, structure.MaxSlots), structure.MaxSlots, 0},
		"one too many":                {sets(0, structure.MaxSlots), sets(0, structure.MaxSlots+1), structure.MaxSlots, 1},
		"those nobody wants make way": {sets(0, structure.MaxSlots), sets(2, structure.MaxSlots), structure.MaxSlots, 0},
		"many at once":                {sets(0, 1), sets(0, 100), structure.MaxSlots, 100 - structure.MaxSlots},
	} {
		t.Run(name, func(t *testing.T) {
			next, left := c.have.With(c.wanted, "")
			if len(next) != c.next || len(left) != c.left {
				t.Errorf("%d and %d left out, want %d and %d", len(next), len(left), c.next, c.left)
			}
			for i := range c.have {
				if c.wanted.Has(&c.have[i]) && !next.Has(&c.have[i]) {
					t.Errorf("the handshake %d is lost", i)
				}
			}
		})
	}
}

// TestTheAdministratorsCiphersHaveASlot: however many sets Ingresses ask for, before or after that of the ConfigMap.
func TestTheAdministratorsCiphersHaveASlot(t *testing.T) {
	for name, have := range map[string]structure.Slots{
		"at once": nil, "full": sets(0, structure.MaxSlots), "full again": sets(0, structure.MaxSlots+1),
	} {
		wanted := sets(0, 2*structure.MaxSlots)
		global := wanted[len(wanted)-1]
		next, _ := have.With(wanted, global.Name())
		if !next.Has(&global) || len(next) > max(structure.MaxSlots, len(have)+1) {
			t.Errorf("%s: %d have slots, and that of all hosts is among them: %t", name, len(next), next.Has(&global))
		}
	}
}
