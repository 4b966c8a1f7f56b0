package snippets

import (
	"fmt"
	"strings"
	"testing"
)

// TestCache checks that results are kept, that the number of kept bytes is bounded, and that a text that is used again
// and again stays.
func TestCache(t *testing.T) {
	c, calls := newCache[Result](), map[string]int{}
	of := func(own string) {
		c.of(texts{own: own}, func(key texts) *Result {
			calls[key.own]++
			return &Result{}
		})
	}
	filler := strings.Repeat("#", MaxBytes-100)
	for i := range 10 * maxCached / MaxBytes {
		of("used")
		of(fmt.Sprint(filler, i))
	}
	if calls["used"] != 1 {
		t.Errorf("a text that is in use was interpreted %d times", calls["used"])
	}
	kept := 0
	for key := range c.recent {
		kept += len(key.own)
	}
	for key := range c.older {
		kept += len(key.own)
	}
	if kept > 2*maxCached {
		t.Errorf("%d bytes are kept", kept)
	}
	of(filler + "0")
	if n := calls[filler+"0"]; n != 2 {
		t.Errorf("the oldest text was interpreted %d times", n)
	}
}
