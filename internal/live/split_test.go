package live

import (
	"math"
	"testing"

	"github.com/k8singress/k8singress/internal/balancer"
	"github.com/k8singress/k8singress/internal/document"
	"github.com/k8singress/k8singress/internal/ir"
)

// splitOf has a share for each weight, whose backends have an endpoint each.
func splitOf(shares ...*document.Share) *split {
	return newSplit(shares, func(d *document.Destination) destination {
		b := balancer.New(d.Backend)
		b.SetEndpoints([]ir.Endpoint{{Address: "127.0.0.1:1"}})
		return destination{backend: b}
	})
}

// TestSplitFollowsTheWeights: of a million requests each share is within 0.2 % of its weight, and so is every second request, as
// of a client that always sends two.
func TestSplitFollowsTheWeights(t *testing.T) {
	const picks = 1_000_000
	worst := 0.0
	for _, weights := range [][]int{{1, 1}, {90, 10}, {199, 1}, {3, 0, 7}, {20, 30, 50}, {1 << 30, 1 << 30}} {
		var shares []*document.Share
		for _, w := range weights {
			shares = append(shares, &document.Share{Weight: w})
		}
		s := splitOf(shares...)
		total := 0
		for _, w := range weights {
			total += w
		}
		counts, second := make([]int, len(weights)), make([]int, len(weights))
		for i := range picks {
			chosen := s.next()
			for j := range s.shares {
				if chosen == &s.shares[j].destination {
					counts[j]++
					second[j] += i % 2
				}
			}
		}
		for j, w := range weights {
			want := picks * float64(w) / float64(total)
			if w > 0 {
				worst = max(worst, math.Abs(float64(counts[j])-want)/want)
			}
			if math.Abs(float64(counts[j])-want) > 0.002*want || math.Abs(float64(second[j])-want/2) > 0.002*want {
				t.Errorf("of %v, share %d has got %d picks, and %d of every second one; want %.0f", weights, j, counts[j], second[j], want)
			}
		}
	}
	// bench prints this.
	t.Logf("1,000,000 picks are at most %.4f %% off the weights", 100*worst)
}

// TestSplitFallsBack: requests for a share without endpoints go to the fallback, and to nothing without one.
func TestSplitFallsBack(t *testing.T) {
	for _, c := range []struct {
		name     string
		fallback bool
		want     int
	}{{"with a fallback", true, 0}, {"without", false, 1}} {
		s := splitOf(&document.Share{Fallback: c.fallback}, &document.Share{Weight: 1})
		if s.next() != &s.shares[1].destination {
			t.Errorf("%s: the share that has all of the weight does not get a request", c.name)
		}
		s.shares[1].backend.SetEndpoints(nil)
		if s.next() != &s.shares[c.want].destination {
			t.Errorf("%s: a request goes elsewhere", c.name)
		}
	}
}

func BenchmarkSplit(b *testing.B) {
	s := splitOf(&document.Share{Weight: 90, Fallback: true}, &document.Share{Weight: 10})
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if s.next() == nil {
				b.Fatal("no destination")
			}
		}
	})
}
