package extauth

import "testing"

func TestSameToBackends(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"X-User", "x-user", true}, {"X-User", "X_USER", true}, {"X-User", "x.user", true},
		{"X-User", "X-Users", false}, {"X-User", "XXUser", false},
	} {
		if SameToBackends(c.a, c.b) != c.same {
			t.Errorf("%s and %s: %t", c.a, c.b, !c.same)
		}
	}
}
