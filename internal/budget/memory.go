package budget

import (
	"math"
	"runtime/debug"
)

// Memory is one use of memory whose amount clients decide.
type Memory int

// The uses of memory.
const (
	// Bodies is bodies of requests and responses that wait in memory for a slow receiver, or for a second try.
	Bodies Memory = iota
	// Connections is the connections of HTTP clients, at ConnectionBytes each.
	Connections
	// Requests is requests of HTTP/2 and HTTP/3 that are under way. A connection of HTTP/1.1 has one request, which is
	// counted with it.
	Requests
	// Encoders is the encoders of compressed responses.
	Encoders
	// Mirrors is bodies of requests that are kept for their copies.
	Mirrors
	// AuthCache is cached responses of external authentication.
	AuthCache
)

const mebibyte = 1 << 20

// memoryTable divides the memory limit of the process (GOMEMLIMIT), in 64ths. All parts together are three quarters of
// it: the rest is for the tables, for translation, and for garbage. factor is how owners share the part. max bounds a
// use that does not need more; zero means no such bound. without is the budget of a process without a memory limit;
// zero means no limit.
var memoryTable = [...]struct{ parts, factor, max, without int64 }{
	Bodies:      {parts: 16, factor: largeFactor, without: 256 * mebibyte},
	Connections: {parts: 16, factor: largeFactor},
	Requests:    {parts: 8, factor: largeFactor, without: 256 * mebibyte},
	Encoders:    {parts: 4, factor: largeFactor, without: 128 * mebibyte},
	Mirrors:     {parts: 2, factor: factor, max: 64 * mebibyte, without: 64 * mebibyte},
	AuthCache:   {parts: 2, factor: factor, max: 128 * mebibyte, without: 128 * mebibyte},
}

// ConnectionBytes is what an idle connection with TLS takes: HTTP/2 30 KB, HTTP/1.1 45 KB and HTTP/3 60 KB, measured as
// the growth of the process.
const ConnectionBytes = 32 << 10

// Limit returns how many bytes the use may have; 0 means no limit. The memory limit is read at each call.
func (m Memory) Limit() int64 {
	row, whole := memoryTable[m], debug.SetMemoryLimit(-1)
	if whole == math.MaxInt64 {
		return row.without
	}
	limit := whole / wholeParts * row.parts
	if row.max > 0 {
		limit = min(limit, row.max)
	}
	return limit
}

// Budget returns a new budget of the bytes of this use.
func (m Memory) Budget() *Budget { return newBudget(m.Limit(), memoryTable[m].factor) }

// MaxClients returns how many connections HTTP clients may have at a time: one for each descriptor of Clients, and no
// more than the memory of Connections has room for. 0 means no limit.
func MaxClients() int64 {
	files, room := Clients.Limit(), Connections.Limit()/ConnectionBytes
	if files == 0 || room > 0 && room < files {
		return room
	}
	return files
}

// ClientBudget returns a new budget of the connections of HTTP clients, which client addresses share: MaxClients of
// them.
func ClientBudget() *Budget { return newBudget(MaxClients(), descriptorTable[Clients].factor) }
