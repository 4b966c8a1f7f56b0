package panics_test

import (
	"bytes"
	"testing"

	"github.com/k8singress/k8singress/internal/process/panics"
)

func TestTry(t *testing.T) {
	done := false
	if p := panics.Try(func() { done = true }); p != nil || !done {
		t.Errorf("a function that returns panics with %v", p)
	}
	p := panics.Try(fails)
	if p == nil || p.Error() != "no such row" || !bytes.Contains(p.Stack, []byte("panics_test.fails")) {
		t.Errorf("a function that panics gives %v", p)
	}
}

func fails() { panic("no such row") }
