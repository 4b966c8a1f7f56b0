// Package events is an example of a plugin with a handler for Caddy's events. The handler tells another system about
// certificates, and about problems with Kubernetes objects.
package events

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyevents"
)

func init() { caddy.RegisterModule(new(Notify)) }

// patience is the maximum duration of a request.
const patience = 5 * time.Second

// Notify sends each event to a URL, as a POST request with a CloudEvent in JSON. The response 403 Forbidden aborts the
// event. For the event cert_obtaining, this means that no certificate is ordered.
//
// Syntax in the Caddyfile:
//
//	events {
//		on <event> notify <url>
//	}
type Notify struct {
	// URL is the address that gets the requests.
	URL string `json:"url"`
}

// CaddyModule returns the Caddy module information.
func (*Notify) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "events.handlers.notify", New: func() caddy.Module { return new(Notify) }}
}

// UnmarshalCaddyfile reads the URL from a Caddyfile.
func (n *Notify) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // the name of the handler
	if !d.AllArgs(&n.URL) {
		return d.ArgErr()
	}
	return nil
}

// Handle sends an event. If it returns an error, Caddy logs it.
func (n *Notify) Handle(ctx context.Context, e caddy.Event) error {
	body, err := json.Marshal(e.CloudEvent())
	if err != nil {
		return fmt.Errorf("encoding the event: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, n.URL, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/cloudevents+json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("sending the event: %w", err)
	}
	defer response.Body.Close()
	switch {
	case response.StatusCode == http.StatusForbidden:
		return fmt.Errorf("%s does not allow it: %w", n.URL, caddy.ErrEventAborted)
	case response.StatusCode >= http.StatusBadRequest:
		return fmt.Errorf("%s has responded with %s", n.URL, response.Status)
	}
	return nil
}

var (
	_ caddyevents.Handler   = (*Notify)(nil)
	_ caddyfile.Unmarshaler = (*Notify)(nil)
)
