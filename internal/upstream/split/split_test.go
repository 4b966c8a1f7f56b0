package split_test

import (
	"math"
	"slices"
	"testing"

	"github.com/k8singress/k8singress/internal/upstream/split"
)

// splitOf returns a split with one share for each weight. Each share is named by its index.
func splitOf(weights ...int) *split.Split[int] {
	var shares []split.Share[int]
	for i, w := range weights {
		shares = append(shares, split.Share[int]{To: i, Weight: w})
	}
	return split.New(nil, shares...)
}

// TestSplitMatchesTheWeights checks that, in a million picks, each share is within 0.2 % of its weight. The same must
// hold for every second pick, as for a client that always sends two requests.
func TestSplitMatchesTheWeights(t *testing.T) {
	const picks = 1_000_000
	worst := 0.0
	for _, weights := range [][]int{{1}, {1, 1}, {90, 10}, {199, 1}, {3, 0, 7}, {3, -5, 7}, {20, 30, 50},
		{1 << 30, 1 << 30}} {
		s := splitOf(weights...)
		total := 0
		for _, w := range weights {
			total += max(w, 0)
		}
		counts, second := make([]int, len(weights)), make([]int, len(weights))
		for i := range picks {
			j := s.Next()
			counts[j]++
			second[j] += i % 2
		}
		for j, w := range weights {
			want := picks * float64(max(w, 0)) / float64(total)
			if w > 0 {
				worst = max(worst, math.Abs(float64(counts[j])-want)/want)
			}
			if math.Abs(float64(counts[j])-want) > 0.002*want || math.Abs(float64(second[j])-want/2) > 0.002*want {
				t.Errorf("of %v, share %d has got %d picks, and %d of every second one; want %.0f", weights, j,
					counts[j], second[j], want)
			}
		}
	}
	// bench prints this line.
	t.Logf("1,000,000 picks are at most %.4f %% off the weights", 100*worst)
}

// TestSplitFallsBack checks that the fallback gets the picks of an empty share, and that without a fallback they stay
// at that share.
func TestSplitFallsBack(t *testing.T) {
	for _, c := range []struct {
		name     string
		fallback bool
		want     int
	}{{"with a fallback", true, 0}, {"without", false, 1}} {
		var empty []int
		s := split.New(func(i int) bool { return slices.Contains(empty, i) },
			split.Share[int]{To: 0, Fallback: c.fallback}, split.Share[int]{To: 1, Weight: 1})
		if s.Next() != 1 {
			t.Errorf("%s: the share that has all of the weight is not chosen", c.name)
		}
		empty = []int{1}
		if s.Next() != c.want {
			t.Errorf("%s: another share is chosen", c.name)
		}
	}
}

func TestSplitWithoutWeights(t *testing.T) {
	for _, weights := range [][]int{nil, {0}, {0, -1}} {
		if splitOf(weights...).Check() == nil {
			t.Errorf("%v is not refused", weights)
		}
	}
	if err := splitOf(0, math.MaxInt, math.MaxInt).Check(); err != nil {
		t.Error(err)
	}
	if err := split.Only(7).Check(); err != nil || split.Only(7).Next() != 7 {
		t.Errorf("the only one is not chosen, %v", err)
	}
}

func BenchmarkSplit(b *testing.B) {
	s := split.New(func(int) bool { return false }, split.Share[int]{To: 1, Weight: 90, Fallback: true},
		split.Share[int]{To: 2, Weight: 10})
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if s.Next() == 0 {
				b.Fatal("none is chosen")
			}
		}
	})
}
