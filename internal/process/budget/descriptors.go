package budget

// Descriptors is one use of file descriptors.
type Descriptors int

// These are the uses of file descriptors.
const (
	// Clients is for connections of HTTP clients, with any version of HTTP.
	Clients Descriptors = iota
	// Endpoints is for connections to the endpoints of HTTP requests. A client connection with HTTP/2 or HTTP/3 can
	// have many requests, and idle connections to endpoints are kept.
	Endpoints
	// Calls is for connections to services for external authentication and to mirrors.
	Calls
	// BodyFiles is for files with request and response bodies that do not fit into memory.
	BodyFiles
	// Streams is for sockets of TCP and UDP ports, to clients and to endpoints.
	Streams
	// Pipes is for the pipes through which the kernel copies data between two sockets.
	Pipes
	// Probes is for connections to the health port.
	Probes
	// reserve is for everything else: listeners, log files, connections to the API server and to certificate
	// authorities, and sockets that are accepted only to be closed.
	reserve
)

// wholeParts is the number of parts into which each of the two tables divides its resource.
const wholeParts = 64

// descriptorTable divides the limit on open files (RLIMIT_NOFILE). parts is the share of the use, in 64ths. factor
// limits each owner's part of it.
var descriptorTable = [...]struct{ parts, factor int64 }{
	Clients:   {14, largeFactor},
	Endpoints: {13, largeFactor},
	Calls:     {2, largeFactor},
	BodyFiles: {4, largeFactor},
	Streams:   {21, factor},
	Pipes:     {6, factor},
	Probes:    {1, largeFactor},
	reserve:   {3, largeFactor},
}

// Limit returns the maximum number of descriptors for this use. 0 means no limit; this is so if the system's limit on
// open files is unknown.
func (d Descriptors) Limit() int64 { return openFiles() * descriptorTable[d].parts / wholeParts }

// Budget returns a new budget of the descriptors for this use.
func (d Descriptors) Budget() *Budget { return newBudget(d.Limit(), descriptorTable[d].factor) }
