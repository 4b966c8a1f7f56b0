package report_test

import (
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/model/report"
)

func TestDatesAreInUTC(t *testing.T) {
	east := time.FixedZone("two hours east", 2*60*60)
	got := report.Date(time.Date(2030, time.January, 1, 1, 4, 5, 999, east))
	if want := "2029-12-31 at 23:04:05 UTC"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestLongListsCountTheRest(t *testing.T) {
	for _, c := range []struct {
		words        []string
		count, limit int
		want         string
	}{
		{words: []string{"a"}, count: 1, limit: 1, want: "a"},
		{words: []string{"a", "b"}, count: 2, limit: 1, want: "a and 1 more"},
		{words: []string{"a", "b", "c"}, count: 3, limit: 3, want: "a, b, c"},
		{words: []string{"a", "b", "c"}, count: 7, limit: 2, want: "a, b and 5 more"},
	} {
		if got := report.List(c.words, c.count, c.limit); got != c.want {
			t.Errorf("%d of %v, %d in all: got %q, want %q", c.limit, c.words, c.count, got, c.want)
		}
	}
}
