package live

import (
	"slices"
	"time"

	"github.com/k8singress/k8singress/internal/model/ir"
)

// checkUsers is called when the users and passwords in a Secret have changed. It ends the streams of all routes that
// use them, after the drain time, because the user of a stream may have been removed or may have a new password. A
// client that is still authorized can reconnect.
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
