package engine

import (
	"time"

	"github.com/k8singress/k8singress/internal/model/report"
)

// summaryPeriod is the minimum time between two changes of the messages of summaries.
const summaryPeriod = time.Minute

// summaries delays changes of summaries (see report.Problem). Clients can change the number of hosts in a summary as
// often as they like, for example with TLS handshakes for new names, and each message would be logged, emitted as an
// event and written as a Kubernetes Event. The zero value delays nothing yet.
type summaries struct {
	// changed is the time of the last change of a message.
	changed time.Time
	// held is true if the messages of the last report are older than the problems that they summarize.
	held bool
}

// settle returns the report to publish after the report before: now, or, if messages of summaries have changed within
// the last summaryPeriod, now with the messages in before.
func (s *summaries) settle(before, now *report.Report) *report.Report {
	steady := now.WithSummariesOf(before)
	s.held = steady != now && time.Since(s.changed) < summaryPeriod
	switch {
	case s.held:
		return steady
	case steady != now:
		s.changed = time.Now()
	}
	return now
}
