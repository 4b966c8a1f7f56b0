package errorlog

import (
	"hash/maphash"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/shrinking"
	"github.com/k8singress/k8singress/internal/process/panics"
)

// Clients can cause any number of errors, so these constants limit the lines. A line costs some microseconds, so even
// maxLines lines need less than one percent of a processor.
const (
	// period is the time in which lines are counted. It begins with the first line of a topic.
	period = time.Second
	// maxOfTopic is the maximum number of lines of one topic in a period, and maxOfClient the maximum number of them
	// about one client, so that a client that causes many errors does not hide the errors of others.
	maxOfTopic  = 20
	maxOfClient = 5
	// maxLines is the maximum number of lines of all topics. The first line of a topic is written even beyond it, so
	// that no Ingress hides errors of another one.
	maxLines = 500
)

// topic identifies similar errors: errors of one Ingress with the same message, level and status. Failures of
// connections have neither an Ingress nor a status.
type topic struct {
	kind

	origin string
	status int
}

// recentLines counts the lines of the last period. It is safe for concurrent use.
type recentLines struct {
	mu sync.Mutex
	// topics has the topics with a line in the current period.
	topics shrinking.Map[topic, *counts]
	// lines is the number of lines of all topics.
	lines int
	seed  maphash.Seed
}

// counts counts the errors of a topic in a period.
type counts struct {
	lines, leftOut int
	// clients has an element for each line: the hash of the client's address.
	clients []uint64
}

// recent counts the lines of all servers of the process.
var recent = recentLines{seed: maphash.MakeSeed()}

// take reports whether an error must be logged. If it returns false, it has counted the error, and logs the number of
// these errors at the end of the period.
func (r *recentLines) take(logger *zap.Logger, of topic, client string) bool {
	return r.count(logger, of, maxOfTopic, maphash.String(r.seed, client))
}

// once is like take, but returns true only once in a period.
func (r *recentLines) once(logger *zap.Logger, of topic) bool { return r.count(logger, of, 1, 0) }

func (r *recentLines) count(logger *zap.Logger, of topic, limit int, client uint64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.topics.Get(of)
	if c == nil {
		c = &counts{}
		r.topics.Set(of, c)
		panics.AfterFunc("http/errorlog", period, func() { r.end(logger, of) })
	} else if c.lines >= limit || r.lines >= maxLines || c.linesAbout(client) >= maxOfClient {
		c.leftOut++
		return false
	}
	c.lines++
	r.lines++
	c.clients = append(c.clients, client)
	return true
}

// linesAbout returns the number of lines about a client.
func (c *counts) linesAbout(client uint64) (n int) {
	for _, other := range c.clients {
		if other == client {
			n++
		}
	}
	return n
}

// end ends the period of a topic. It logs how many errors were left out.
func (r *recentLines) end(logger *zap.Logger, of topic) {
	r.mu.Lock()
	c := r.topics.Get(of)
	r.topics.Delete(of)
	r.lines -= c.lines
	r.mu.Unlock()
	if c.leftOut == 0 {
		return
	}
	var fields []zap.Field
	if of.status != 0 {
		object := ir.ParseRef(of.origin)
		fields = append(fields, zap.Int("status", of.status), zap.String("namespace", object.Namespace),
			zap.String("ingress", object.Name))
	}
	logger.Log(of.level, "lines left out of the log: "+of.message, slices.Concat(fields,
		[]zap.Field{zap.Int("left_out", c.leftOut)})...)
}
