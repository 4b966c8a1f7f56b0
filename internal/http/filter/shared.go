package filter

import (
	"time"

	"github.com/k8singress/k8singress/internal/http/basicauth"
	"github.com/k8singress/k8singress/internal/http/callout"
	"github.com/k8singress/k8singress/internal/http/extauth"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/http/mirror"
	"github.com/k8singress/k8singress/internal/http/ratelimit"
)

// Shared holds the resources that all filters of a routing table share, such as caches and counters. They are kept when
// the configuration of a filter changes, and are safe for concurrent use.
type Shared struct {
	// zones holds the state of the rate limits. Times in it are relative to began.
	zones *ratelimit.Zones
	began time.Time
	// Users holds the user lists for basic authentication.
	Users *basicauth.Store
	// call sends requests to external services. verdicts caches the responses of external authentication services.
	call     CallFunc
	verdicts *extauth.Cache
	// Mirrors sends the copies of mirrored requests.
	Mirrors *mirror.Sender
}

// CallFunc sends a request to a service while processing a client's request, and returns the service's response.
type CallFunc = func(*message.Request, *callout.Call) (callout.Response, error)

// NewShared returns the shared resources for the filters of a new routing table. call sends a request to a service that
// is configured in an Ingress.
func NewShared(call CallFunc, mirrors *mirror.Sender) *Shared {
	return &Shared{
		zones: ratelimit.NewZones(), began: time.Now(), Users: basicauth.NewStore(), call: call,
		verdicts: extauth.NewCache(),
		Mirrors:  mirrors,
	}
}
