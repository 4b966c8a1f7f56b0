package budget

// Descriptors identifies one purpose of file descriptors, such as the connections of HTTP clients. Each purpose gets a
// share of the limit on open files.
type Descriptors int

// The purposes of file descriptors.
const (
	// Clients is the share of file descriptors for connections of HTTP clients, with any version of HTTP.
	Clients Descriptors = iota
	// Endpoints is the share of file descriptors for HTTP connections to endpoints. There can be more of these
	// connections than client connections, because a client connection with HTTP/2 or HTTP/3 can have many requests at
	// a time, and because idle connections to endpoints are kept.
	Endpoints
	// Calls is the share of file descriptors for connections to external authentication services, and to services that
	// get mirrored requests.
	Calls
	// BodyFiles is the share of file descriptors for temporary files with request and response bodies that do not fit
	// into memory.
	BodyFiles
	// Streams is the share of file descriptors for proxied TCP and UDP connections, both to clients and to endpoints.
	Streams
	// Pipes is the share of file descriptors for the pipes through which the kernel copies data between two sockets.
	Pipes
	// Probes is the share of file descriptors for connections to the health port.
	Probes
	// reserve is the share of file descriptors for everything else: listeners, log files, connections to the API server
	// and to certificate authorities, and sockets that are accepted only to be closed.
	reserve
)

// wholeParts is the denominator of the shares in descriptorTable and memoryTable: the shares are in 64ths.
const wholeParts = 64

// descriptorTable divides the limit on open files (RLIMIT_NOFILE) among the purposes. parts is the share of a purpose,
// in 64ths. factor limits how much of this share one owner gets, such as a namespace.
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

// Limit returns the maximum number of descriptors for the purpose. It returns 0, which means no limit, if the system's
// limit on open files is unknown.
func (d Descriptors) Limit() int64 { return openFiles() * descriptorTable[d].parts / wholeParts }

// Budget returns a new budget with the descriptors for the purpose.
func (d Descriptors) Budget() *Budget { return newBudget(d.Limit(), descriptorTable[d].factor) }
