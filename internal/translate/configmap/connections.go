package configmap

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/k8singress/k8singress/internal/model/nginx"
)

const (
	// mostRequests is the maximum for requests per connection. No connection lives long enough to reach it.
	mostRequests = 1 << 30
	// leastHead and mostHead are the smallest and largest limit for the size of request heads, in bytes. Browsers need
	// the smallest one. The largest one bounds the memory for each head that is being read.
	leastHead, mostHead = 4 << 10, 1 << 20
	// mostStreams is the maximum number of concurrent streams that common HTTP/2 implementations accept.
	mostStreams = 1 << 16
)

// The keys for client connections.
var (
	clientHeaderTimeout = Key{
		Name: "client-header-timeout", Scope: process,
		Doc: "For how many seconds the head of a request may come in. A client that has sent a part of it then gets " +
			"408. With HTTP/2, and with HTTP/3, it has no meaning: a client that opens a connection and asks for " +
			"nothing is idle there.",
		Values: nginx.AreSeconds(1), Example: "10", Default: "60",
		Parse: nginx.Into(func(c *Config) *time.Duration { return &c.Global.Connections.HeaderTimeout },
			nginx.Seconds(1)),
	}
	clientBodyTimeout = Key{
		Name: "client-body-timeout", Scope: process,
		Doc: "For how many seconds nothing may come in of the body of a request; its client gets 408 then. The " +
			"streams of gRPC may be silent for longer.",
		Values: nginx.AreSeconds(1), Example: "10", Default: "60",
		Parse: nginx.Into(func(c *Config) *time.Duration { return &c.Global.Connections.BodyTimeout },
			nginx.Seconds(1)),
	}
	keepAlive = Key{
		Name: "keep-alive", Scope: process,
		Doc: "For how many seconds a connection may wait for its next request. 0 ends each connection after one " +
			"request; those of HTTP/2 and HTTP/3 when the requests are answered that have come by then. Connections " +
			"of HTTP/2 and HTTP/3 that are open keep the time that they began with.",
		Values: nginx.AreSeconds(0), Example: "30", Default: "75",
		Parse: nginx.Into(func(c *Config) *time.Duration { return &c.Global.Connections.KeepAlive },
			func(value string) (time.Duration, error) {
				d, err := nginx.Seconds(0)(value)
				if err == nil && d == 0 {
					d = -1
				}
				return d, err
			}),
	}
	keepAliveRequests = Key{
		Name: "keep-alive-requests", Scope: process,
		Doc: "How many requests a connection may have. The client is asked for another connection then. The default " +
			"of ingress-nginx, 1000, is there to free what nginx keeps for a connection; here nothing is kept.",
		Values: fmt.Sprintf("a number from 1 to %d", mostRequests), Example: "10000", Default: "no limit",
		Parse: nginx.Into(func(c *Config) *int { return &c.Global.Connections.Requests },
			nginx.Number(1, mostRequests)),
	}
	largeClientHeaderBuffers = Key{
		Name: "large-client-header-buffers", Scope: process,
		Doc: "How many bytes the head of a request may have: a number of buffers and their size, whose product " +
			"counts. A larger head gets 431. nginx also wants each line to fit into one buffer; here one line may " +
			"be as long as all. New connections of HTTP/2 and HTTP/3 have it, too.",
		Values: "a number and a size, which make 4k to 1m", Example: "4 16k", Default: "4 8k",
		Parse: nginx.Into(func(c *Config) *int { return &c.Global.Connections.MaxHead }, readHeaderBuffers),
	}
	http2MaxConcurrentStreams = Key{
		Name: "http2-max-concurrent-streams", Scope: process,
		Doc: "How many requests a new connection of HTTP/2 may have at a time. The default of ingress-nginx is " +
			"128. It has no effect on HTTP/3.",
		Values: fmt.Sprintf("a number from 1 to %d", mostStreams), Example: "128", Default: "250",
		Parse: nginx.Into(func(c *Config) *int { return &c.Global.Connections.Streams }, nginx.Number(1, mostStreams)),
	}
)

// readHeaderBuffers returns the total size of all buffers, in bytes.
func readHeaderBuffers(value string) (int, error) {
	fields := strings.Fields(value)
	if len(fields) != 2 {
		return 0, errors.New("it is not a number and a size, such as 4 8k")
	}
	number, err := strconv.Atoi(fields[0])
	if err != nil || number < 1 || number > mostHead {
		return 0, fmt.Errorf("%s is not a number of buffers", nginx.Quote(fields[0]))
	}
	size, err := nginx.Size(fields[1])
	if err != nil {
		return 0, err
	}
	if all := int64(number) * min(size, mostHead+1); all < leastHead || all > mostHead {
		return 0, fmt.Errorf("%s are %d bytes: a head needs 4k, and may have 1m", nginx.Quote(value), all)
	}
	return number * int(size), nil
}
