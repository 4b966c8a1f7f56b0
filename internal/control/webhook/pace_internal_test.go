package webhook

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestPace checks that a review with a large body pauses after each turn, that others do not work meanwhile, and that
// an ordinary review neither pauses nor waits. On the clock of synctest, work takes no time, so the test adds it.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, ended := newPacer(), make(chan struct{})
		first := &work{pacer: p, ended: ended, paced: true}
		begin := time.Now()
		do := func(w *work, worked time.Duration) {
			if err := w.start(); err != nil {
				t.Error(err)
			}
			w.spent, w.total = w.spent+worked, w.total+worked
			if err := w.rest(); err != nil {
				t.Error(err)
			}
			w.stop()
		}
		expect := func(what string, want time.Duration) {
			t.Helper()
			if took := time.Since(begin); took != want {
				t.Errorf("%s: %v, want %v", what, took, want)
			}
			begin = time.Now()
		}
		do(first, turn/2)
		expect("half a turn", 0)
		do(first, turn/2)
		expect("a turn", pause)
		do(&work{pacer: p, ended: ended}, time.Second)
		expect("an ordinary review", 0)
		first.total = 10 * growth * turn
		do(first, 9*turn)
		expect("9 turns after much work", 0)
		do(first, 2*turn)
		expect("11 turns after much work", pause)

		if err := first.start(); err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(time.Second, first.stop)
		do(&work{pacer: p, ended: ended, paced: true}, 0)
		expect("a review while another one works", time.Second+pause) // The other one pauses, too.

		if err := first.start(); err != nil {
			t.Fatal(err)
		}
		close(ended)
		if err := (&work{pacer: p, ended: ended, paced: true}).start(); !errors.Is(err, errLate) {
			t.Errorf("a review whose time ends while it waits gets %v", err)
		}
		if err := first.rest(); !errors.Is(err, errLate) || len(p.free) > 0 {
			t.Errorf("a review whose time ends while it works gets %v", err)
		}
	})
}
