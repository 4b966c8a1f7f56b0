package live

import (
	"slices"
	"time"

	"github.com/k8singress/k8singress/internal/model/ir"
)

// checkUsers is called when the users and passwords in a Secret have changed. After the drain time, it ends the open
// streams that started before the change, on routes that use the Secret. The user of such a stream may have been
// removed or may have a new password. Clients that are still authorized can reconnect.
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
