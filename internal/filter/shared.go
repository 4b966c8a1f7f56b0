package filter

import (
	"time"

	"github.com/k8singress/k8singress/internal/basicauth"
	"github.com/k8singress/k8singress/internal/callout"
	"github.com/k8singress/k8singress/internal/extauth"
	"github.com/k8singress/k8singress/internal/message"
	"github.com/k8singress/k8singress/internal/mirror"
	"github.com/k8singress/k8singress/internal/ratelimit"
)

// Shared is what the filters of one table have in common, and what outlives the documents that they stand in. Its parts are safe for
// any goroutine.
type Shared struct {
	// zones count by the time since began.
	zones *ratelimit.Zones
	began time.Time
	// Users are those that clients are asked to be.
	Users *basicauth.Store
	// ask asks external services, and answers are those that are kept.
	ask     Ask
	answers *extauth.Cache
	// Mirrors sends copies of requests.
	Mirrors *mirror.Sender
}

// Ask calls a service for a request.
type Ask = func(*message.Request, *callout.Call) (callout.Answer, error)

// NewShared returns what the filters of a new table share. ask calls services that Ingresses name.
func NewShared(ask Ask, mirrors *mirror.Sender) *Shared {
	return &Shared{
		zones: ratelimit.NewZones(), began: time.Now(), Users: basicauth.NewStore(), ask: ask, answers: extauth.NewCache(),
		Mirrors: mirrors,
	}
}
