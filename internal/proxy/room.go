package proxy

import "sync/atomic"

// room is for the bodies of all requests and answers together. Clients decide how much there is to be kept, and neither the memory nor
// the disk is theirs. Where there is none left, nothing fails: what has no room in memory goes into a file, and what has none there is
// passed on as it comes, so that the sender waits for the receiver.
type room struct{ used, most atomic.Int64 }

// memory has room for 4,096 bodies of 64 KiB, or for 128 of a MiB and 2,048 of 64 KiB: a quarter of what the pods of deploy/ have.
// files are bounded by an option.
var memory, files = newRoom(256 << 20), newRoom(DefaultFiles)

// DefaultFiles is how many bytes of bodies stand in files at a time, unless SetFiles says otherwise.
const DefaultFiles int64 = 8 << 30

func newRoom(most int64) *room {
	r := new(room)
	r.most.Store(most)
	return r
}

// take takes n bytes, until give. It returns false, and takes none, if there are not as many.
func (r *room) take(n int64) bool {
	if r.used.Add(n) <= r.most.Load() {
		return true
	}
	r.give(n)
	return false
}

// takeSpare is take for what could do with less: it leaves half of the room to others.
func (r *room) takeSpare(n int64) bool {
	if r.used.Add(n) <= r.most.Load()/2 {
		return true
	}
	r.give(n)
	return false
}

func (r *room) give(n int64) { r.used.Add(-n) }

// SetFiles bounds how many bytes of bodies stand in files at a time. What stands there already stays.
func SetFiles(most int64) { files.most.Store(most) }

// Kept is how many bytes bodies take at the moment, or may take at most.
type Kept struct{ Memory, Files int64 }

// KeptBodies returns what the bodies of all requests and answers take, and what they may take.
func KeptBodies() (now, most Kept) {
	return Kept{memory.used.Load(), files.used.Load()}, Kept{memory.most.Load(), files.most.Load()}
}
