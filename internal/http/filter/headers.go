package filter

import (
	"fmt"
	"net/http"

	"golang.org/x/net/http/httpguts"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/model/ir"
)

// changesOf converts the configured header changes. It returns an error for invalid names and values. Values are
// literal: unlike in Caddy's headers handler, placeholders are not replaced.
func changesOf(c ir.HeaderChanges) (changes message.Changes, err error) {
	for _, part := range []struct {
		from []ir.Header
		to   *[]message.Field
	}{{c.Set, &changes.Set}, {c.Add, &changes.Add}, {namesOnly(c.Remove), &changes.Remove}} {
		for _, f := range part.from {
			if !httpguts.ValidHeaderFieldName(f.Name) || !httpguts.ValidHeaderFieldValue(f.Value) {
				return changes, fmt.Errorf(
					"the header field %q: %q contains characters that are not allowed in a header",
					f.Name, f.Value)
			}
			*part.to = append(*part.to, message.NewField(f.Name, f.Value))
		}
	}
	return changes, nil
}

func namesOnly(names []string) []ir.Header {
	fields := make([]ir.Header, 0, len(names))
	for _, name := range names {
		fields = append(fields, ir.Header{Name: name})
	}
	return fields
}

// responseHeaders changes the header fields of responses from the backend and from later handlers of the chain. It does
// not change error responses.
type responseHeaders struct{ changes message.Changes }

func newResponseHeaders(of ir.ResponseHeaders) (Filter, error) {
	changes, err := changesOf(of.HeaderChanges)
	return &responseHeaders{changes}, err
}

func (h *responseHeaders) Apply(x *exchange.Exchange) (bool, error) {
	x.ChangeResponse(&h.changes)
	return false, nil
}

// directResponse responds to all requests with a fixed status. The requests do not reach later filters or the backend.
type directResponse struct {
	status int
	// rejection is the error for a status of 400 or higher.
	rejection *exchange.Failure
}

func newDirectResponse(of ir.DirectResponse) (Filter, error) {
	if of.Status < 200 || of.Status > 599 {
		return nil, fmt.Errorf("status_code %d is not between 200 and 599", of.Status)
	}
	return &directResponse{of.Status, exchange.Rejection(of.Status,
		"the configuration returns this status for the path: the verdicts on the Ingress may say why")}, nil
}

func (d *directResponse) Apply(x *exchange.Exchange) (bool, error) {
	if d.status >= http.StatusBadRequest {
		return x.RespondError(d.rejection)
	}
	return true, x.Respond(d.status, "")
}
