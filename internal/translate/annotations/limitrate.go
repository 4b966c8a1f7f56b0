package annotations

import (
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
)

// maxKilobytes is the maximum value of limit-rate and limit-rate-after. It exceeds what a connection can transfer in a
// second.
const maxKilobytes = 10_000_000

// The annotations that limit the bandwidth of responses.
var (
	limitRate = Annotation{
		Name: "limit-rate",
		Doc: "The maximum rate at which a response is sent, in kilobytes per second. The limit applies to each " +
			"response separately, so a client with several requests gets more. WebSockets are not limited.",
		Values: "a number of kilobytes; 0 means no limit", Example: "500", Default: "no limit",
		Scope: ScopeLocation, Risk: RiskLow,
		Parse: nginx.Into(func(s *Settings) *int { return &s.Asked.Rate.Kilobytes }, nginx.Number(0, maxKilobytes)),
	}
	limitRateAfter = Annotation{
		Name: "limit-rate-after", Doc: "The number of kilobytes of a response that are sent before limit-rate applies.",
		Values: "a number of kilobytes", Example: "1024", Default: "0", Scope: ScopeLocation, Risk: RiskLow,
		Parse: nginx.Into(func(s *Settings) *int { return &s.Asked.Rate.After }, nginx.Number(0, maxKilobytes)),
	}
)

// rate holds the values of limit-rate (in kilobytes per second) and limit-rate-after (in kilobytes).
type rate struct{ Kilobytes, After int }

func (s *Settings) bandwidth(string) []ir.Filter {
	r := &s.Asked.Rate
	if r.Kilobytes == 0 {
		return nil
	}
	return []ir.Filter{ir.Bandwidth{BytesPerSecond: int64(r.Kilobytes) << 10, After: int64(r.After) << 10}}
}
