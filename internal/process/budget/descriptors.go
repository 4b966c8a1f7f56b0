package budget

// Descriptors is a purpose for which the process uses file descriptors.
type Descriptors int

// The purposes of file descriptors.
const (
	// Clients is for connections of HTTP clients, with any version of HTTP.
	Clients Descriptors = iota
	// Endpoints is for HTTP connections to endpoints. There can be more of them than client connections, because a
	// client connection with HTTP/2 or HTTP/3 can have many requests at a time, and because idle connections to
	// endpoints are kept.
	Endpoints
	// Calls is for connections to external authentication services, and to services that get mirrored requests.
	Calls
	// BodyFiles is for temporary files with request and response bodies that do not fit into memory.
	BodyFiles
	// Streams is for the sockets that connect TCP and UDP ports with clients and with endpoints.
	Streams
	// Pipes is for the pipes through which the kernel copies data between two sockets.
	Pipes
	// Probes is for connections to the health port.
	Probes
	// reserve is for everything else: listeners, log files, connections to the API server and to certificate
	// authorities, and sockets that are accepted only to be closed.
	reserve
)

// wholeParts is the number of parts into which descriptorTable and memoryTable each divide their resource.
const wholeParts = 64

// descriptorTable divides the limit on open files (RLIMIT_NOFILE). parts is the share of a purpose, in 64ths. factor
// limits how much of this share one owner gets.
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
