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
	// ask calls external services. answers caches responses of external authentication services.
	ask     Ask
	answers *extauth.Cache
	// Mirrors sends copies of requests.
	Mirrors *mirror.Sender
}

// Ask calls a service on behalf of a request.
type Ask = func(*message.Request, *callout.Call) (callout.Response, error)

// NewShared returns the resources for the filters of a new table. ask calls services that Ingresses name.
func NewShared(ask Ask, mirrors *mirror.Sender) *Shared {
	return &Shared{
		zones: ratelimit.NewZones(), began: time.Now(), Users: basicauth.NewStore(), ask: ask,
		answers: extauth.NewCache(),
		Mirrors: mirrors,
	}
}
