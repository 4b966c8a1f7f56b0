package ratelimit

import (
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/k8singress/k8singress/internal/process/budget"
)

const (
	shards = 16
	// ways is the number of clients in a set of a hash table. The hash of a client's key selects the set in which the
	// client is stored.
	ways = 8
	// maxEntries is the default of the maximum number of clients in a zone. The zone then takes 10 MB of memory.
	maxEntries = 1 << 18
	// maxTotal is the maximum number of clients in all zones together. It is divided among the namespaces, so that one
	// namespace cannot use up the limit of the others. The first few clients in each shard of a zone do not count
	// towards this limit, so that every zone can always store some clients.
	maxTotal = 1 << 21
	// tidying is the interval at which each shard checks whether its table can be made smaller.
	tidying = time.Minute
)

// Requests limits the request rate of clients, like a zone of nginx's limit_req. It is safe for concurrent use.
type Requests struct {
	speeds [2]int64
	room   *room
	// maxPerShard is the maximum number of clients in a shard, a power of two.
	maxPerShard int
	// shards is nil until the zone's first request. This saves memory, because most zones in a large cluster get no
	// requests for a long time.
	shards atomic.Pointer[[shards]shard]
}

// shard returns the hash table for clients whose keys have the given hash.
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

// room tracks how many table entries a zone has reserved in its namespace's share of maxTotal.
type room struct {
	share *budget.Share
	own   atomic.Int64
}

// take reserves n table entries in the share of the namespace, or releases -n entries if n is negative. It returns
// false if the share has fewer than n entries left.
func (r *room) take(n int) bool {
	if n < 0 {
		r.share.Give(int64(-n))
	} else if !r.share.Take(int64(n)) {
		return false
	}
	r.own.Add(int64(n))
	return true
}

// giveBack releases all table entries that the zone has reserved.
func (r *room) giveBack() { r.share.Give(r.own.Swap(0)) }

func newRequests(rates Rates, maxClients int, share *budget.Share) *Requests {
	return &Requests{speeds: rates.speeds(), room: &room{share: share},
		maxPerShard: max(ways, 1<<(bits.Len(uint(max(1, maxClients/shards)))-1))}
}

// shard is one of the hash tables in which a zone stores the state of its clients. The hash of a client's key selects a
// set of entries in which the client may be stored. The mutex protects all fields.
type shard struct {
	sync.Mutex
	// entries is the hash table. Its length is zero or a power of two.
	entries []entry
	tidied  int64
}

// entry is the state of a client: its excess for both rates after its last request, and the time of that request in
// milliseconds.
type entry struct {
	key    Key
	excess [2]int64
	// last is the time of the last request. It is zero if the entry is free.
	last int64
}

// Take counts a request of a client. If the client exceeds one of the rates, Take returns false and does not count the
// request. now is the time since an arbitrary but fixed moment.
func (z *Requests) Take(key Key, bursts Bursts, now time.Duration) bool {
	_, ok := z.count(key, bursts, now, true)
	return ok
}

// Allows reports whether Take would return true. It does not count the request.
func (z *Requests) Allows(key Key, bursts Bursts, now time.Duration) bool {
	_, ok := z.count(key, bursts, now, false)
	return ok
}

// TakeDelayed is like Take. If ok is true, the request must wait, so that the client keeps its rates. The requests that
// exceed a rate by no more than undelayed need not wait.
func (z *Requests) TakeDelayed(key Key, bursts, undelayed Bursts, now time.Duration) (wait time.Duration, ok bool) {
	excess, ok := z.count(key, bursts, now, true)
	for i, free := range [...]int{undelayed.PerSecond, undelayed.PerMinute} {
		if over := excess[i] - int64(free)*perRequest; over > 0 {
			wait = max(wait, time.Duration(over*1000/z.speeds[i])*time.Millisecond)
		}
	}
	return wait, ok
}

// count returns the excess of a client after a request. If the client exceeds one of the rates, ok is false. Otherwise
// the request is counted if take is true.
func (z *Requests) count(key Key, bursts Bursts, now time.Duration, take bool) (excess [2]int64, ok bool) {
	hash := key.hash()
	s := z.shard(hash)
	// Add 1, because a time of zero means that an entry is free.
	ms := now.Milliseconds() + 1
	s.Lock()
	defer s.Unlock()
	e := s.find(&key, hash)
	if e == nil {
		if take {
			*z.place(s, hash, ms) = entry{key: key, last: ms}
		}
		return excess, true
	}
	// The time of the last request may be later than now, because concurrent requests may lock the shard in a different
	// order. Treat a negative difference as zero.
	passed, next := max(0, ms-e.last), e.excess
	for i, burst := range [...]int{bursts.PerSecond, bursts.PerMinute} {
		if z.speeds[i] == 0 {
			continue
		}
		if next[i] = after(e.excess[i], z.speeds[i], passed); next[i] > int64(burst)*perRequest {
			return excess, false
		}
	}
	if take {
		e.excess, e.last = next, e.last+passed
	}
	return next, true
}

// set returns the entries of the table in which a client with this hash may be stored.
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

// place returns an entry of the table in which a new client can be stored. If all entries of the client's set are in
// use and the table cannot grow, this is the entry that would expire first.
func (z *Requests) place(s *shard, hash uint64, now int64) *entry {
	z.tidy(s, now)
	for {
		first, left := z.first(s.set(hash), now)
		if left <= 0 || !z.resize(s, 2*len(s.entries), now) {
			return first
		}
	}
}

// first returns the entry of set that expires first, and the number of milliseconds until it expires.
func (z *Requests) first(set []entry, now int64) (first *entry, left int64) {
	for i := range set {
		if l := z.left(&set[i], now); first == nil || l < left {
			first, left = &set[i], l
		}
	}
	return first, left
}

// left returns the number of milliseconds until an entry expires, so that its client counts as a new client. The result
// is not positive if the entry has expired or is free.
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

// tidy allocates the table of a shard on its first use. Later, it shrinks the table at most once per tidying interval
// if it is much larger than necessary.
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

// resize replaces the table of a shard with a table of the given size, and copies the entries that have not expired. If
// the size exceeds a limit, or the entries do not fit into the new table, it returns false and changes nothing.
func (z *Requests) resize(s *shard, size int, now int64) bool {
	more := size - len(s.entries)
	if size > z.maxPerShard || more > 0 && !z.room.take(more) {
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
			// The entry does not fit into its set of the new table. This can only happen if the table shrinks: if it
			// grows, all entries of a set come from the same set of the old table.
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
