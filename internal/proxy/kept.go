package proxy

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/k8singress/k8singress/internal/budget"
)

// Clients decide how much of bodies there is to keep, so namespaces of backends share the memory, the files and their
// bytes. Without room nothing fails: a body that has no room in memory goes into a file, and without a file it is
// passed on as it comes in, so that its sender waits for its receiver.
var (
	// bodyMemory is made with the first body that needs it: Caddy sets the memory limit when it starts.
	bodyMemory = sync.OnceValue(budget.Bodies.Budget)
	fileBytes  = budget.NewLarge(DefaultFiles)
)

// DefaultFiles is how many bytes of bodies may stand in files at a time, unless SetFiles sets another limit.
const DefaultFiles int64 = 8 << 30

// SetFiles sets how many bytes of bodies may stand in files at a time. With less than 1, no new body goes into a
// file. Bodies that are in files already stay there.
func SetFiles(limit int64) { fileBytes.SetLimit(max(limit, 1)) }

// unmeasured counts requests with a body whose length FastCGI needs and nobody knows, and that got no file.
var unmeasured atomic.Int64

var errNoLength = errors.New("FastCGI needs the length of the body, the client has not sent it, and there is no " +
	"room to keep the body until its end")

// Usage is what requests and responses take of the process.
type Usage struct {
	// Endpoints, Calls and BodyFiles are in file descriptors, BodyMemory and BodyFileBytes in bytes.
	Endpoints, Calls, BodyFiles, BodyMemory, BodyFileBytes budget.Usage
	// Unmeasured is how many requests got 503, because FastCGI needs the length of their body.
	Unmeasured int64
}

// Used returns what requests and responses take at this moment.
func Used() Usage {
	return Usage{
		Endpoints: endpoints.usage(), Calls: calls.usage(), BodyFiles: bodyFiles.usage(),
		BodyMemory: bodyMemory().Usage(), BodyFileBytes: fileBytes.Usage(), Unmeasured: unmeasured.Load(),
	}
}
