package ratelimit

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/k8singress/k8singress/internal/budget"
)

const (
	shards = 16
	// ways is how many places a client can have in a table.
	ways = 8
	// mostEntries is how many clients fit into a zone: all of them take 10 MB.
	mostEntries = 1 << 18
	mostOfShard = mostEntries / shards
	// mostOfAll is how many clients fit into all zones together, but for the first few of each zone, which have room in any case. Namespaces share
	// them: one whose zones are full takes no room from the zones of others.
	mostOfAll = 1 << 21
	// tidying is how often a shard looks whether it is much larger than it need be.
	tidying = time.Minute
)

// Requests is a zone that counts requests. It is for any goroutine.
type Requests struct {
	speeds [2]int64
	room   *room
	// shards are nil until the first request: most of many zones have none for a long time.
	shards atomic.Pointer[[shards]shard]
}

// shard returns the shard of a hash.
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

// room is what the namespace of a zone has of the entries of all zones, and how many of them the zone has.
type room struct {
	share *budget.Share
	own   atomic.Int64
}

// take takes more entries for the zone, or fewer. It returns false if there are not as many.
func (r *room) take(n int) bool {
	if n < 0 {
		r.share.Give(int64(-n))
	} else if !r.share.Take(int64(n)) {
		return false
	}
	r.own.Add(int64(n))
	return true
}

// giveBack gives back all that the zone has.
func (r *room) giveBack() { r.share.Give(r.own.Swap(0)) }

func newRequests(rates Rates, share *budget.Share) *Requests {
	return &Requests{speeds: rates.speeds(), room: &room{share: share}}
}

// shard is a table in which each client has one of the places of its set. All of it is for who holds the mutex.
type shard struct {
	sync.Mutex
	// entries are a power of two, or none.
	entries []entry
	tidied  int64
}

// entry is what is known of a client: how far ahead it was of each rate at its last request, in milliseconds.
type entry struct {
	key    Key
	excess [2]int64
	// last is zero for a place that is free.
	last int64
}

// Take counts a request of a client at a time, which is since any fixed moment. It returns false, and counts nothing, if the client is too far
// ahead of one of the rates. A rate that is zero holds nobody back.
func (z *Requests) Take(key Key, bursts Bursts, now time.Duration) bool {
	hash := key.hash()
	s := z.shard(hash)
	// Zero is for free places.
	ms := now.Milliseconds() + 1
	s.Lock()
	defer s.Unlock()
	e := s.find(&key, hash)
	if e == nil {
		*z.place(s, hash, ms) = entry{key: key, last: ms}
		return true
	}
	// Goroutines that have asked for the time in one order may come here in another one.
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

// set are the places where a client may be.
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

// place returns the place for a new client. Whoever has it is forgotten.
func (z *Requests) place(s *shard, hash uint64, now int64) *entry {
	z.tidy(s, now)
	for {
		first, left := z.first(s.set(hash), now)
		if left <= 0 || !z.resize(s, 2*len(s.entries), now) {
			return first
		}
	}
}

// first returns the entry of a set that is the first to say nothing, and in how many milliseconds that is.
func (z *Requests) first(set []entry, now int64) (first *entry, left int64) {
	for i := range set {
		if l := z.left(&set[i], now); first == nil || l < left {
			first, left = &set[i], l
		}
	}
	return first, left
}

// left returns for how many more milliseconds an entry says something; zero and less is that it does not.
func (z *Requests) left(e *entry, now int64) int64 {
	var most int64
	if e.last == 0 {
		return 0
	}
	for i, speed := range z.speeds {
		if speed > 0 {
			most = max(most, lifetime(e.excess[i], speed))
		}
	}
	return most - (now - e.last)
}

// tidy makes the table that a new shard has not got, and gives back most of one that has become too large.
func (z *Requests) tidy(s *shard, now int64) {
	if s.entries == nil {
		s.entries, s.tidied = make([]entry, ways), now
	}
	if now-s.tidied < tidying.Milliseconds() || len(s.entries) == ways {
		return
	}
	s.tidied = now
	telling := 0
	for i := range s.entries {
		if z.left(&s.entries[i], now) > 0 {
			telling++
		}
	}
	size := ways
	for size < 8*telling {
		size *= 2
	}
	if size < len(s.entries) {
		z.resize(s, size, now)
	}
}

// resize gives a shard another table with the entries that still say something. It returns false, and leaves it as it is, where there is no
// room for that.
func (z *Requests) resize(s *shard, size int, now int64) bool {
	more := size - len(s.entries)
	if size > mostOfShard || more > 0 && !z.room.take(more) {
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
			// It happens in a smaller table only: a set of a larger one has entries of one set.
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
