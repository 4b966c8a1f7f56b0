package budget

import (
	"math"
	"runtime/debug"
)

// Memory identifies one purpose of memory, such as buffered request bodies. Clients determine how much memory each
// purpose needs, so each purpose has a limit.
type Memory int

// The purposes of memory.
const (
	// Bodies is the share of memory for request and response bodies that wait for a slow receiver or for a retry.
	Bodies Memory = iota
	// Connections is the share of memory for connections of HTTP clients, which need ConnectionBytes each.
	Connections
	// Requests is the share of memory for HTTP/2 and HTTP/3 requests in progress. An HTTP/1.1 connection has only one
	// request, which is included in Connections.
	Requests
	// Encoders is the share of memory for the encoders of compressed responses.
	Encoders
	// Mirrors is the share of memory for request bodies that are kept for mirrored requests.
	Mirrors
	// AuthCache is the share of memory for cached responses of external authentication.
	AuthCache
)

const mebibyte = 1 << 20

// memoryTable divides the memory limit of the process (GOMEMLIMIT) among the purposes. parts is the share of a purpose,
// in 64ths. All shares together are three quarters of the limit. The rest is for routing tables, for the translation of
// Kubernetes objects, and for garbage. factor limits how much of a share one owner gets, such as a namespace. max is
// the maximum size of a share in bytes; zero means no maximum. without is the size of the budget in bytes if the
// process has no memory limit; zero means that the budget is not limited.
var memoryTable = [...]struct{ parts, factor, max, without int64 }{
	Bodies:      {parts: 16, factor: largeFactor, without: 256 * mebibyte},
	Connections: {parts: 16, factor: largeFactor},
	Requests:    {parts: 8, factor: largeFactor, without: 256 * mebibyte},
	Encoders:    {parts: 4, factor: largeFactor, without: 128 * mebibyte},
	Mirrors:     {parts: 2, factor: factor, max: 64 * mebibyte, without: 64 * mebibyte},
	AuthCache:   {parts: 2, factor: factor, max: 128 * mebibyte, without: 128 * mebibyte},
}

// ConnectionBytes is the memory that is reserved for one client connection. According to measurements, an idle
// connection with TLS makes the process grow by 30 KB with HTTP/2, 45 KB with HTTP/1.1 and 60 KB with HTTP/3.
const ConnectionBytes = 32 << 10

// Limit returns the maximum number of bytes for the purpose, according to the current memory limit of the process. 0
// means no limit.
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

// Budget returns a new budget with the bytes for the purpose.
func (m Memory) Budget() *Budget { return newBudget(m.Limit(), memoryTable[m].factor) }

// MaxClients returns the maximum number of connections of HTTP clients. It is limited by the file descriptors for
// Clients and by the memory for Connections. 0 means no limit.
func MaxClients() int64 {
	files, room := Clients.Limit(), Connections.Limit()/ConnectionBytes
	if files == 0 || room > 0 && room < files {
		return room
	}
	return files
}

// ClientBudget returns a new budget of MaxClients connections. Its owners are client addresses.
func ClientBudget() *Budget { return newBudget(MaxClients(), descriptorTable[Clients].factor) }
