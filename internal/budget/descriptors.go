package budget

// Descriptors is one use of file descriptors.
type Descriptors int

// The uses of file descriptors.
const (
	// Clients is the connections of HTTP clients, over all versions of HTTP.
	Clients Descriptors = iota
	// Endpoints is the connections to the endpoints of HTTP clients. HTTP/2 and HTTP/3 have many requests on one
	// connection of a client, and idle connections are kept.
	Endpoints
	// Calls is the connections to services for external authentication and to mirrors.
	Calls
	// BodyFiles is the files for bodies of requests and responses that do not fit into memory.
	BodyFiles
	// Streams is the sockets of TCP and UDP ports, of clients and endpoints.
	Streams
	// Pipes is the pipes through which the kernel moves bytes between two sockets.
	Pipes
	// Probes is the connections to the health port.
	Probes
	// reserve is for everything else: listeners, log files, connections to the API server and to certificate
	// authorities, and sockets that are accepted only to be closed.
	reserve
)

// wholeParts is the sum of all parts in each of the two tables.
const wholeParts = 64

// descriptorTable divides the limit on open files (RLIMIT_NOFILE), in 64ths, and has the factor by which owners share
// each part.
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

// Limit returns how many descriptors the use may have; 0 means no limit, where the system does not say how many files
// may be open.
func (d Descriptors) Limit() int64 { return openFiles() * descriptorTable[d].parts / wholeParts }

// Budget returns a new budget of the descriptors of this use.
func (d Descriptors) Budget() *Budget { return newBudget(d.Limit(), descriptorTable[d].factor) }
