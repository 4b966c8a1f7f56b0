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

// Shared holds the resources that the filters of a table share. They outlive the documents of the filters. They are
// safe for concurrent use.
type Shared struct {
	// zones holds the rate limits. Their times are relative to began.
	zones *ratelimit.Zones
	began time.Time
	// Users holds the user lists for basic authentication.
	Users *basicauth.Store
	// call calls external services. verdicts caches responses of external authentication services.
	call     CallFunc
	verdicts *extauth.Cache
	// Mirrors sends copies of requests.
	Mirrors *mirror.Sender
}

// CallFunc calls a service on behalf of a request.
type CallFunc = func(*message.Request, *callout.Call) (callout.Response, error)

// NewShared returns the resources for the filters of a new table. call calls services that Ingresses name.
func NewShared(call CallFunc, mirrors *mirror.Sender) *Shared {
	return &Shared{
		zones: ratelimit.NewZones(), began: time.Now(), Users: basicauth.NewStore(), call: call,
		verdicts: extauth.NewCache(),
		Mirrors:  mirrors,
	}
}
