package ratelimit

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/k8singress/k8singress/internal/process/budget"
)

const (
	shards = 16
	// ways is the number of positions in a table where a client can be stored.
	ways = 8
	// maxEntries is the maximum number of clients of a zone. They take 10 MB.
	maxEntries  = 1 << 18
	maxPerShard = maxEntries / shards
	// maxTotal is the maximum number of clients of all zones together, without the smallest table of each shard, which
	// is always available. Namespaces share the entries, so a namespace with full zones takes none from other
	// namespaces.
	maxTotal = 1 << 21
	// tidying is the interval in which a shard checks whether it can be made smaller.
	tidying = time.Minute
)

// Requests limits the request rate of each client of a zone. It is safe for concurrent use.
type Requests struct {
	speeds [2]int64
	room   *room
	// shards is nil until the first request, because most zones of a large cluster have no requests for a long time.
	shards atomic.Pointer[[shards]shard]
}

// shard returns the shard for a hash.
func (z *Requests) shard(hash uint64) *shard {
	all := z.shards.Load()
	if all == nil {
		all = new([shards]shard)
		if !z.shards.CompareAndSwap(nil, all) {
			all = z.shards.Load()
		}
	}
	return &all[hash%shards]
}

// room counts the entries that a zone takes from the share of its namespace.
type room struct {
	share *budget.Share
	own   atomic.Int64
}

// take takes n entries for the zone; a negative n returns them. It returns false if there are not enough entries.
func (r *room) take(n int) bool {
	if n < 0 {
		r.share.Give(int64(-n))
	} else if !r.share.Take(int64(n)) {
		return false
	}
	r.own.Add(int64(n))
	return true
}

// giveBack returns all entries of the zone.
func (r *room) giveBack() { r.share.Give(r.own.Swap(0)) }

func newRequests(rates Rates, share *budget.Share) *Requests {
	return &Requests{speeds: rates.speeds(), room: &room{share: share}}
}

// shard is a hash table in which each client belongs to one set of positions. The mutex protects all fields.
type shard struct {
	sync.Mutex
	// entries has a length of zero or a power of two.
	entries []entry
	tidied  int64
}

// entry is the state of a client: its excess for each rate at its last request, and the time of that request in
// milliseconds.
type entry struct {
	key    Key
	excess [2]int64
	// last is zero for a free position.
	last int64
}

// Take counts a request of a client. now is the time since a fixed moment. It returns false, and does not count the
// request, if the client exceeds one of the rates. A rate of zero is not limited.
func (z *Requests) Take(key Key, bursts Bursts, now time.Duration) bool {
	hash := key.hash()
	s := z.shard(hash)
	// Zero is reserved for free positions.
	ms := now.Milliseconds() + 1
	s.Lock()
	defer s.Unlock()
	e := s.find(&key, hash)
	if e == nil {
		*z.place(s, hash, ms) = entry{key: key, last: ms}
		return true
	}
	// The last request may have a later time, because goroutines may get here in a different order.
	passed, next := max(0, ms-e.last), e.excess
	for i, burst := range [...]int{bursts.PerSecond, bursts.PerMinute} {
		if z.speeds[i] == 0 {
			continue
		}
		if next[i] = after(e.excess[i], z.speeds[i], passed); next[i] > int64(burst)*perRequest {
			return false
		}
	}
	e.excess, e.last = next, e.last+passed
	return true
}

// set returns the positions for a hash.
func (s *shard) set(hash uint64) []entry {
	first := int(hash/shards) & (len(s.entries)/ways - 1) * ways
	return s.entries[first : first+ways]
}

func (s *shard) find(key *Key, hash uint64) *entry {
	if len(s.entries) == 0 {
		return nil
	}
	set := s.set(hash)
	for i := range set {
		if e := &set[i]; e.last != 0 && e.key == *key {
			return e
		}
	}
	return nil
}

// place returns the position for a new client. If the position is in use, its client is dropped.
func (z *Requests) place(s *shard, hash uint64, now int64) *entry {
	z.tidy(s, now)
	for {
		first, left := z.first(s.set(hash), now)
		if left <= 0 || !z.resize(s, 2*len(s.entries), now) {
			return first
		}
	}
}

// first returns the entry of a set that expires first, and the number of milliseconds until then.
func (z *Requests) first(set []entry, now int64) (first *entry, left int64) {
	for i := range set {
		if l := z.left(&set[i], now); first == nil || l < left {
			first, left = &set[i], l
		}
	}
	return first, left
}

// left returns the number of milliseconds until an entry expires. It is zero or negative for an expired entry.
func (z *Requests) left(e *entry, now int64) int64 {
	var longest int64
	if e.last == 0 {
		return 0
	}
	for i, speed := range z.speeds {
		if speed > 0 {
			longest = max(longest, lifetime(e.excess[i], speed))
		}
	}
	return longest - (now - e.last)
}

// tidy creates the table of a new shard. For other shards it regularly checks whether the table is too large, and
// shrinks it.
func (z *Requests) tidy(s *shard, now int64) {
	if s.entries == nil {
		s.entries, s.tidied = make([]entry, ways), now
	}
	if now-s.tidied < tidying.Milliseconds() || len(s.entries) == ways {
		return
	}
	s.tidied = now
	unexpired := 0
	for i := range s.entries {
		if z.left(&s.entries[i], now) > 0 {
			unexpired++
		}
	}
	size := ways
	for size < 8*unexpired {
		size *= 2
	}
	if size < len(s.entries) {
		z.resize(s, size, now)
	}
}

// resize gives a shard a new table of a different size with the entries that have not expired. It returns false, and
// changes nothing, if there is not enough room.
func (z *Requests) resize(s *shard, size int, now int64) bool {
	more := size - len(s.entries)
	if size > maxPerShard || more > 0 && !z.room.take(more) {
		return false
	}
	next := shard{entries: make([]entry, size)}
	for i := range s.entries {
		e := &s.entries[i]
		if z.left(e, now) <= 0 {
			continue
		}
		to, left := z.first(next.set(e.key.hash()), now)
		if left > 0 {
			// This only happens if the table shrinks. In a larger table, all entries of a set come from a single set of
			// the old table.
			return false
		}
		*to = *e
	}
	if more < 0 {
		z.room.take(more)
	}
	s.entries = next.entries
	return true
}
