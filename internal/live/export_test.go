package live

import "time"

// SetDrainTime shortens the time that streams of a route have after it has gone.
func (t *Table) SetDrainTime(d time.Duration) { t.drainTime = d }
