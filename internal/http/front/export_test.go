package front

import (
	"testing"

	"github.com/k8singress/k8singress/internal/process/budget"
)

// LimitRequests replaces the memory budget of requests until the test ends, and returns the new budget.
func LimitRequests(t *testing.T, bytes int64) *budget.Budget {
	before, b := process.requests, budget.New(bytes)
	process.requests = &requests{budget: func() *budget.Budget { return b }}
	t.Cleanup(func() { process.requests = before })
	return b
}

// SocketsOfHTTP3 returns the number of HTTP/3 sockets that the connSet of a server holds.
func SocketsOfHTTP3(server string) int {
	process.mu.Lock()
	defer process.mu.Unlock()
	return len(process.groups[server].conns.quicSockets)
}

// Draining returns the number of connSets that drain and have not ended.
func Draining() (n int) {
	process.mu.Lock()
	defer process.mu.Unlock()
	for _, g := range process.groups {
		if g.conns == nil || !g.conns.leaving.Load() {
			continue
		}
		select {
		case <-g.conns.ended:
		default:
			n++
		}
	}
	return n
}
