package engine

import (
	"fmt"
	"testing"

	"github.com/k8singress/k8singress/internal/ir"
)

// sets returns handshakes with one made-up cipher each, numbered from first on.
func sets(first, n int) offered {
	var all offered
	for i := range n {
		all = append(all, ir.TLSPolicy{Ciphers: []string{fmt.Sprint("CIPHER_", first+i)}}.Effective(false))
	}
	return all
}

// TestOffered: what is there stays, so that a host that comes and goes is no reload; what is too much is left out, and takes
// nothing away from those that came before.
func TestOffered(t *testing.T) {
	for name, c := range map[string]struct {
		have, wanted offered
		next, left   int
	}{
		"none":                        {nil, nil, 0, 0},
		"the first":                   {nil, sets(0, 1), 1, 0},
		"the same again":              {sets(0, 2), sets(1, 1), 2, 0},
		"nobody wants it":             {sets(0, 2), nil, 2, 0},
		"full":                        {sets(0, mostHandshakes), sets(0, mostHandshakes), mostHandshakes, 0},
		"one too many":                {sets(0, mostHandshakes), sets(0, mostHandshakes+1), mostHandshakes, 1},
		"those nobody wants make way": {sets(0, mostHandshakes), sets(2, mostHandshakes), mostHandshakes, 0},
		"many at once":                {sets(0, 1), sets(0, 100), mostHandshakes, 100 - mostHandshakes},
	} {
		t.Run(name, func(t *testing.T) {
			next, left := c.have.with(c.wanted, "")
			if len(next) != c.next || len(left) != c.left {
				t.Errorf("%d and %d left out, want %d and %d", len(next), len(left), c.next, c.left)
			}
			for i := range c.have {
				if c.wanted.has(&c.have[i]) && !next.has(&c.have[i]) {
					t.Errorf("the handshake %d is lost", i)
				}
			}
		})
	}
}

// TestTheAdministratorsCiphersAreOffered: however many sets Ingresses ask for, before or after that of the ConfigMap.
func TestTheAdministratorsCiphersAreOffered(t *testing.T) {
	for name, have := range map[string]offered{"at once": nil, "full": sets(0, mostHandshakes), "full again": sets(0, mostHandshakes+1)} {
		wanted := sets(0, 2*mostHandshakes)
		global := wanted[len(wanted)-1]
		next, _ := have.with(wanted, global.Name())
		if !next.has(&global) || len(next) > max(mostHandshakes, len(have)+1) {
			t.Errorf("%s: %d are offered, and that of all hosts is among them: %t", name, len(next), next.has(&global))
		}
	}
}
