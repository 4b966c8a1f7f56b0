package annotations

import (
	"time"

	"github.com/k8singress/k8singress/internal/model/nginx"
)

var retryAfter = Annotation{
	Name: OwnPrefix + "retry-after",
	Doc: "The number of seconds in the `Retry-After` header of responses with status 503. The controller adds this " +
		"header only if it sends the 503 itself, for example during " +
		"[maintenance](annotations.md#k8singressiomaintenance), if there are no endpoints, if a request exceeds a " +
		"limit, if an annotation is invalid, or if a [chain](chains.md) fails with 503. An " +
		"[error page](error-pages.md) that replaces such a response gets the header if its status is 503. Other " +
		"responses of endpoints are not changed. With 0, there is no header.",
	Values: nginx.AreSeconds(0), Example: "30", Default: "0", Scope: ScopeLocation, Risk: RiskLow,
	Parse: nginx.Into(func(s *Settings) *time.Duration { return &s.RetryAfter }, nginx.Seconds(0)),
}
