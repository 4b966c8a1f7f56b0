package proxy

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/k8singress/k8singress/internal/process/budget"
)

// The size of buffered bodies depends on the clients. Therefore the memory for buffered bodies, the number of files and
// the number of bytes in files are limited. Each limit is divided between the namespaces of the backends. Requests
// usually do not fail when a limit is reached. A body that does not fit into memory is buffered in a file. If it cannot
// be buffered in a file either, it is forwarded while it arrives, so that the receiver slows the sender down.
var (
	// bodyMemory is created when the first body needs it, because Caddy sets the memory limit of the process when it
	// starts.
	bodyMemory = sync.OnceValue(budget.Bodies.Budget)
	fileBytes  = budget.NewLarge(DefaultFiles)
)

// DefaultFiles is the default maximum for the total size of bodies in files, in bytes. SetFiles changes the maximum.
const DefaultFiles int64 = 8 << 30

// SetFiles sets the maximum total size, in bytes, of the bodies in files. If limit is zero or negative, no further body
// is buffered in a file. Bodies that are already in files stay there.
func SetFiles(limit int64) { fileBytes.SetLimit(max(limit, 1)) }

// unmeasured counts requests that were rejected because FastCGI needs the body's length, the client did not send it,
// and there was no file to buffer the body.
var unmeasured atomic.Int64

var errNoLength = errors.New("FastCGI needs the length of the request body: the client did not send it, " +
	"and there is no memory or file to buffer the body")

// Usage contains the resources that are used for buffered bodies and for connections to endpoints and external
// services.
type Usage struct {
	// Endpoints, Calls and BodyFiles are numbers of file descriptors. BodyMemory and BodyFileBytes are numbers of
	// bytes.
	Endpoints, Calls, BodyFiles, BodyMemory, BodyFileBytes budget.Usage
	// Unmeasured is the number of requests that got 503 because FastCGI needs the length of the body before the body,
	// the client did not send the length, and the body could not be buffered.
	Unmeasured int64
}

// Used returns the resources that bodies and connections currently use.
func Used() Usage {
	return Usage{
		Endpoints: endpoints.usage(), Calls: calls.usage(), BodyFiles: bodyFiles.usage(),
		BodyMemory: bodyMemory().Usage(), BodyFileBytes: fileBytes.Usage(), Unmeasured: unmeasured.Load(),
	}
}
