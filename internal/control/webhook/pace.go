package webhook

import "time"

const (
	// ordinaryBody is the maximum size of bodies that are reviewed without pauses.
	ordinaryBody = 64 << 10
	// turn is the time after which the work for larger bodies pauses. The processor then serves requests of clients.
	// runtime.Gosched is not enough: the scheduler would continue the review before it asks the network for requests.
	turn, pause = 200 * time.Microsecond, 800 * time.Microsecond
	// growth makes turns longer while a review works: a turn is at least 1/growth of its work so far. An idle process
	// sleeps for a millisecond at least, so a review with much work would otherwise pause for most of maxTime.
	growth = 100
)

// pacer lets all reviews with larger bodies together use a part of one processor: one of them works at a time, and none
// of them works during a pause.
type pacer struct{ free chan struct{} }

func newPacer() *pacer { return &pacer{free: make(chan struct{}, 1)} }

// work is the work of one review. It is not safe for concurrent use.
type work struct {
	pacer *pacer
	// ended is closed when the time for the review is over.
	ended <-chan struct{}
	// paced is true for a large body. It only changes while the review does not work.
	paced bool
	// started is the zero time while the review does not work.
	started time.Time
	// spent is the work since the last pause, and total is all work.
	spent, total time.Duration
	// timer ends a pause. It is nil before the first one.
	timer *time.Timer
}

// start begins to work. It waits for other reviews, and returns errLate if the time is over.
func (w *work) start() error {
	if w.paced {
		select {
		case w.pacer.free <- struct{}{}:
		case <-w.ended:
			return errLate
		}
	}
	w.started = time.Now()
	return nil
}

// stop ends the work for the moment, and pauses if the last pause was long ago. It does nothing if the review does not
// work.
func (w *work) stop() {
	if w.started.IsZero() {
		return
	}
	worked := time.Since(w.started)
	w.started, w.spent, w.total = time.Time{}, w.spent+worked, w.total+worked
	if !w.paced {
		return
	}
	if w.spent >= w.turn() {
		w.spent = 0
		if w.timer == nil {
			w.timer = time.NewTimer(pause)
		} else {
			w.timer.Reset(pause)
		}
		<-w.timer.C
	}
	<-w.pacer.free
}

// turn returns the time after which the next pause is due.
func (w *work) turn() time.Duration { return max(turn, w.total/growth) }

// rest pauses if the last pause was long ago. It must be called often during the work. It returns errLate if the time
// is over, and then the review does not work any more.
func (w *work) rest() error {
	select {
	case <-w.ended:
		w.stop()
		return errLate
	default:
	}
	if !w.paced || w.spent+time.Since(w.started) < w.turn() {
		return nil
	}
	w.stop()
	return w.start()
}
