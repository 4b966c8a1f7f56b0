package proxy

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/k8singress/k8singress/internal/process/budget"
)

// The size of buffered bodies depends on clients, so the namespaces of backends share the memory, the files and the
// bytes in files. A full budget causes no failure: a body that does not fit into memory goes into a file, and without a
// file it is forwarded as it arrives, so that the receiver slows the sender down.
var (
	// bodyMemory is created for the first body that needs it, because Caddy sets the memory limit when it starts.
	bodyMemory = sync.OnceValue(budget.Bodies.Budget)
	fileBytes  = budget.NewLarge(DefaultFiles)
)

// DefaultFiles is the default limit of SetFiles, in bytes.
const DefaultFiles int64 = 8 << 30

// SetFiles sets how many bytes of bodies may be in files at a time. With a limit below 1, no new body goes into a file.
// Bodies that are already in files stay there.
func SetFiles(limit int64) { fileBytes.SetLimit(max(limit, 1)) }

// unmeasured counts requests that were rejected because FastCGI needs the body's length, the client did not send it,
// and there was no file to buffer the body.
var unmeasured atomic.Int64

var errNoLength = errors.New("FastCGI needs the length of the request body: the client did not send it, " +
	"and there is no memory or file to buffer the body")

// Usage is the resource usage of requests and responses.
type Usage struct {
	// Endpoints, Calls and BodyFiles are in file descriptors, BodyMemory and BodyFileBytes in bytes.
	Endpoints, Calls, BodyFiles, BodyMemory, BodyFileBytes budget.Usage
	// Unmeasured is the number of requests that got 503 because FastCGI needs the length of their body.
	Unmeasured int64
}

// Used returns the current usage.
func Used() Usage {
	return Usage{
		Endpoints: endpoints.usage(), Calls: calls.usage(), BodyFiles: bodyFiles.usage(),
		BodyMemory: bodyMemory().Usage(), BodyFileBytes: fileBytes.Usage(), Unmeasured: unmeasured.Load(),
	}
}
