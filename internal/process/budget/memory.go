package budget

import (
	"math"
	"runtime/debug"
)

// Memory is one use of memory whose amount depends on clients.
type Memory int

// These are the uses of memory.
const (
	// Bodies is for request and response bodies that wait in memory for a slow receiver or for a retry.
	Bodies Memory = iota
	// Connections is for connections of HTTP clients, at ConnectionBytes each.
	Connections
	// Requests is for HTTP/2 and HTTP/3 requests in progress. An HTTP/1.1 connection has only one request, which is
	// included in Connections.
	Requests
	// Encoders is for the encoders of compressed responses.
	Encoders
	// Mirrors is for request bodies that are kept for mirrored requests.
	Mirrors
	// AuthCache is for cached responses of external authentication.
	AuthCache
)

const mebibyte = 1 << 20

// memoryTable divides the memory limit of the process (GOMEMLIMIT). parts is the share of the use, in 64ths. All parts
// together are three quarters: the rest is for the tables, for translation, and for garbage. factor limits each owner's
// part of the use. max is an upper limit for a use that does not need more; zero means no upper limit. without is the
// budget, in bytes, of a process without a memory limit; zero means no limit.
var memoryTable = [...]struct{ parts, factor, max, without int64 }{
	Bodies:      {parts: 16, factor: largeFactor, without: 256 * mebibyte},
	Connections: {parts: 16, factor: largeFactor},
	Requests:    {parts: 8, factor: largeFactor, without: 256 * mebibyte},
	Encoders:    {parts: 4, factor: largeFactor, without: 128 * mebibyte},
	Mirrors:     {parts: 2, factor: factor, max: 64 * mebibyte, without: 64 * mebibyte},
	AuthCache:   {parts: 2, factor: factor, max: 128 * mebibyte, without: 128 * mebibyte},
}

// ConnectionBytes is the memory that is reserved for one connection. Measured as growth of the process, an idle
// connection with TLS needs 30 KB with HTTP/2, 45 KB with HTTP/1.1 and 60 KB with HTTP/3.
const ConnectionBytes = 32 << 10

// Limit returns the maximum number of bytes for this use; 0 means no limit. Each call reads the current memory limit.
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

// Budget returns a new budget of the bytes for this use.
func (m Memory) Budget() *Budget { return newBudget(m.Limit(), memoryTable[m].factor) }

// MaxClients returns the maximum number of connections of HTTP clients: one per descriptor of Clients, but no more than
// fit into the memory of Connections. 0 means no limit.
func MaxClients() int64 {
	files, room := Clients.Limit(), Connections.Limit()/ConnectionBytes
	if files == 0 || room > 0 && room < files {
		return room
	}
	return files
}

// ClientBudget returns a new budget of MaxClients connections, which client addresses share.
func ClientBudget() *Budget { return newBudget(MaxClients(), descriptorTable[Clients].factor) }
