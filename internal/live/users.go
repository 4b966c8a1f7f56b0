package live

import (
	"slices"
	"time"

	"github.com/k8singress/k8singress/internal/ir"
)

// checkUsers ends, when their time is over, the streams of routes whose users have become others: the client of each may be one who
// has gone, or whose password is another one. Who still is one may begin anew.
func (t *Table) checkUsers(users ir.Users) {
	now := time.Now()
	before := func(s stream) bool { return s.began.Before(now) }
	var list []endingStreams
	t.allHosts(func(h *host) {
		for _, r := range h.all {
			for d := range r.destinations {
				if slices.Contains(d.users, users) {
					list = append(list, endingStreams{r.streams, before})
					break
				}
			}
		}
	})
	t.drain(list)
}
