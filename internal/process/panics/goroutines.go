package panics

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Go calls the function do on a new goroutine. If do panics, Go reports the panic and calls the functions in ends,
// which must close what the goroutine was serving. A panic therefore ends one connection or one job, and never the
// process. place identifies the code in the log and in the metric, such as "proxy/upload"; it must be a constant.
func Go(place string, do func(), ends ...func()) {
	go Guard(place, do, ends...)
}

// Guard is like Go, but calls the function do on the caller's goroutine.
func Guard(place string, do func(), ends ...func()) {
	caught := Try(do)
	if caught == nil {
		return
	}
	Report(place, caught)
	for _, end := range ends {
		end()
	}
}

// Run calls the function do on the caller's goroutine and returns its error. If do panics, Run reports the panic and
// returns it as an error of type *Panic.
func Run(place string, do func() error) (err error) {
	if caught := Try(func() { err = do() }); caught != nil {
		Report(place, caught)
		return caught
	}
	return err
}

// restartPause is the delay before a loop that panicked is started again.
const restartPause = time.Second

// Loop calls the function do on a new goroutine. After each panic it waits a second and calls do again, until do
// returns. It is for work that must run as long as the process. do must be able to restart in any state that a panic
// leaves behind.
func Loop(place string, do func()) {
	go loop(place, do)
}

func loop(place string, do func()) {
	for {
		caught := Try(do)
		if caught == nil {
			return
		}
		Report(place, caught)
		<-time.After(restartPause)
	}
}

// Group is a sync.WaitGroup whose goroutines recover from panics. Its zero value is ready for use.
type Group struct{ sync.WaitGroup }

// Go is like the function Go, and adds the goroutine to the group.
func (g *Group) Go(place string, do func(), ends ...func()) {
	g.WaitGroup.Go(func() { Guard(place, do, ends...) })
}

// Loop is like the function Loop, and adds the goroutine to the group.
func (g *Group) Loop(place string, do func()) {
	g.WaitGroup.Go(func() { loop(place, do) })
}

// AfterFunc is like time.AfterFunc, but a panic of the function do is reported and does not end the process.
func AfterFunc(place string, d time.Duration, do func()) *time.Timer {
	return time.AfterFunc(d, func() { Guard(place, do) })
}

// AfterContext is like context.AfterFunc, but a panic of the function do is reported and does not end the process.
func AfterContext(ctx context.Context, place string, do func()) (stop func() bool) {
	return context.AfterFunc(ctx, func() { Guard(place, do) })
}

// reportPeriod is the minimum time between two reports of panics at the same place.
const reportPeriod = time.Second

// Reporter logs a panic. leftOut is the number of panics at the place that were counted but not reported since the last
// report.
type Reporter func(place string, caught *Panic, leftOut int)

var (
	reporter atomic.Pointer[Reporter]
	reports  = reportLog{places: map[string]*placeLog{}}
)

// SetReporter sets the function that logs panics. Until it is called, panics are only counted.
func SetReporter(r Reporter) { reporter.Store(&r) }

// reportLog counts the panics at each place, and stores the time of the last report for each place. It is safe for
// concurrent use.
type reportLog struct {
	mu     sync.Mutex
	places map[string]*placeLog
}

type placeLog struct {
	total    uint64
	reported time.Time
	leftOut  int
}

// count counts a panic at a place. report is false if a panic at this place was reported less than reportPeriod ago.
// leftOut is the number of panics at this place that were not reported since the last report.
func (l *reportLog) count(place string, now time.Time) (leftOut int, report bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.places[place]
	if p == nil {
		p = &placeLog{}
		l.places[place] = p
	}
	p.total++
	if now.Sub(p.reported) < reportPeriod {
		p.leftOut++
		return 0, false
	}
	leftOut = p.leftOut
	p.reported, p.leftOut = now, 0
	return leftOut, true
}

// Report counts a panic that was caught at a place and passes it to the reporter, at most once per second for each
// place.
func Report(place string, caught *Panic) {
	leftOut, report := reports.count(place, time.Now())
	if r := reporter.Load(); report && r != nil {
		(*r)(place, caught, leftOut)
	}
}

// Counts returns the number of panics by place since the start of the process.
func Counts() map[string]uint64 {
	reports.mu.Lock()
	defer reports.mu.Unlock()
	counts := make(map[string]uint64, len(reports.places))
	for place, p := range reports.places {
		counts[place] = p.total
	}
	return counts
}
