package configmap

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/k8singress/k8singress/internal/model/nginx"
	"github.com/k8singress/k8singress/internal/model/option"
)

const (
	// maxRequests is the maximum number of requests per connection. In practice no connection lives long enough to
	// reach it.
	maxRequests = 1 << 30
	// minHead and maxHead are the smallest and the largest limit that can be configured for the size of request
	// headers, in bytes. The headers of browsers fit into minHead. maxHead bounds the memory that a client can use
	// before its request is complete.
	minHead, maxHead = 4 << 10, 1 << 20
	// maxStreams is the largest limit for concurrent streams that common HTTP/2 implementations accept.
	maxStreams = 1 << 16
)

// connectionKeys are the ConfigMap keys with limits of client connections. To add a limit, add its key here, a field to
// ir.ClientConnections and to limits.Limits, and its effect to the HTTP server.
var connectionKeys = option.Table[Config, string]{
	{
		Name: "client-header-timeout", Scope: process,
		Doc: "The number of seconds within which a client must send the complete headers of a request. A client that " +
			"has sent only a part of the headers gets 408. This key applies to HTTP/1.1 only. HTTP/2 and HTTP/3 " +
			"connections without requests are closed after the timeout in keep-alive instead.",
		Values: nginx.AreSeconds(1), Example: "10", Default: "60",
		Parse: nginx.Into(func(c *Config) *time.Duration { return &c.Global.Connections.HeaderTimeout },
			nginx.Seconds(1)),
	},
	{
		Name: "client-body-timeout", Scope: process,
		Doc: "The maximum time between two reads of a request body from the client, in seconds. If the timeout " +
			"expires, the client gets 408. It does not apply to gRPC streams.",
		Values: nginx.AreSeconds(1), Example: "10", Default: "60",
		Parse: nginx.Into(func(c *Config) *time.Duration { return &c.Global.Connections.BodyTimeout },
			nginx.Seconds(1)),
	},
	{
		Name: "keep-alive", Scope: process,
		Doc: "The number of seconds after which a client's connection without requests is closed. With 0, each " +
			"HTTP/1.1 connection is closed after one request, and each HTTP/2 and HTTP/3 connection after the " +
			"responses to the requests that have already arrived. A change does not apply to HTTP/2 and HTTP/3 " +
			"connections that are already open.",
		Values: nginx.AreSeconds(0), Example: "30", Default: "75",
		Parse: nginx.Into(func(c *Config) *time.Duration { return &c.Global.Connections.KeepAlive },
			func(value string) (time.Duration, error) {
				d, err := nginx.Seconds(0)(value)
				if err == nil && d == 0 {
					d = -1
				}
				return d, err
			}),
	},
	{
		Name: "keep-alive-requests", Scope: process,
		Doc: "The maximum number of requests on a client's connection. After that, the client has to open a new " +
			"connection. In ingress-nginx, the default is 1000, which frees memory that nginx keeps for each " +
			"connection. This is not necessary here.",
		Values: fmt.Sprintf("a number from 1 to %d", maxRequests), Example: "10000", Default: "no limit",
		Parse: nginx.Into(func(c *Config) *int { return &c.Global.Connections.Requests },
			nginx.Number(1, maxRequests)),
	},
	{
		Name: "large-client-header-buffers", Scope: process,
		Doc: "The maximum total size of the headers of a request. The value is a number of buffers and the size of " +
			"one buffer; the product of the two is the limit. Requests with larger headers get 431. In nginx, each " +
			"line must fit into one buffer; here a single line may use the whole size. The limit also applies to new " +
			"HTTP/2 and HTTP/3 connections.",
		Values:  "a number and a size, separated by a space; their product is from 4k to 1m",
		Example: "4 16k", Default: "4 8k",
		Parse: nginx.Into(func(c *Config) *int { return &c.Global.Connections.MaxHead }, readHeaderBuffers),
	},
	{
		Name: "http2-max-concurrent-streams", Scope: process,
		Doc: "The maximum number of concurrent requests on a new HTTP/2 connection. The default of ingress-nginx is " +
			"128. HTTP/3 is not affected.",
		Values: fmt.Sprintf("a number from 1 to %d", maxStreams), Example: "128", Default: "250",
		Parse: nginx.Into(func(c *Config) *int { return &c.Global.Connections.Streams }, nginx.Number(1, maxStreams)),
	},
}

// readHeaderBuffers parses the number and size of header buffers, and returns their total size in bytes.
func readHeaderBuffers(value string) (int, error) {
	fields := strings.Fields(value)
	if len(fields) != 2 {
		return 0, errors.New("the value is not a number and a size, such as 4 8k")
	}
	number, err := strconv.Atoi(fields[0])
	if err != nil || number < 1 || number > maxHead {
		return 0, fmt.Errorf("%s is not a number of buffers", nginx.Quote(fields[0]))
	}
	size, err := nginx.Size(fields[1])
	if err != nil {
		return 0, err
	}
	if all := int64(number) * min(size, maxHead+1); all < minHead || all > maxHead {
		return 0, fmt.Errorf("%s means %d bytes: the minimum is 4k, and the maximum is 1m", nginx.Quote(value), all)
	}
	return number * int(size), nil
}
