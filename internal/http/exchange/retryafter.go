package exchange

import (
	"net/http"
	"strconv"
	"time"

	"github.com/k8singress/k8singress/internal/http/message"
)

const retryAfter = "Retry-After"

// addRetryAfter adds the Retry-After header of the route to a response with status 503. It must only be called for
// responses of the controller itself. It keeps the header that a Caddy handler of the chain has set.
func (x *Exchange) addRetryAfter(response *message.Response) {
	if response.Status != http.StatusServiceUnavailable || x.Route == nil || x.Route.RetryAfter == 0 {
		return
	}
	if _, ok := response.Fields.Joined(retryAfter); ok {
		return
	}
	seconds := strconv.FormatInt(int64(x.Route.RetryAfter/time.Second), 10)
	response.Fields.Add(message.NewField(retryAfter, seconds))
}
