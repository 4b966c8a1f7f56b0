package snippets

import (
	"errors"
	"math"

	"github.com/k8singress/k8singress/internal/model/nginx"
)

// Head is the size of request headers for which a text has a directive. Bytes is 0 if there is no directive.
type Head struct {
	Place
	Directive string
	Bytes     int64
}

// maxBuffer is the maximum size of a buffer for request headers, and maxBuffers the maximum number of such buffers.
const (
	maxBuffer  = 1 << 30
	maxBuffers = math.MaxInt16
)

// headSize interprets client_header_buffer_size and large_client_header_buffers. The larger of both sizes counts, since
// nginx reads a header that does not fit into the first buffer into the other ones.
func (r *reader) headSize(d *Directive) error {
	number, size := 1, d.Args[len(d.Args)-1]
	if len(d.Args) == 2 {
		var err error
		if number, err = nginx.Number(1, maxBuffers)(d.Args[0]); err != nil {
			return err
		}
	}
	bytes, err := nginx.Size(size)
	switch {
	case err != nil:
		return err
	case bytes == 0 && len(d.Args) == 2, bytes > maxBuffer:
		return errors.New("the size must be from 1 to 1g")
	case r.scope.context == inHTTP:
		return useKey("large-client-header-buffers")
	case r.server.listens != nil:
		return leftOut("the limit of the hosts of Ingresses applies: use the ConfigMap key " +
			"large-client-header-buffers")
	}
	if of := &r.server.head; bytes*int64(number) > of.Bytes {
		*of = Head{r.place(d), d.Name, bytes * int64(number)}
	}
	return nil
}
