package filter

import (
	"fmt"

	"golang.org/x/net/http/httpguts"

	"github.com/k8singress/k8singress/internal/exchange"
	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/message"
)

// changesOf refuses what cannot stand in a header. The rest is data: unlike in Caddy's headers handler, there are no placeholders.
func changesOf(c ir.HeaderChanges) (changes message.Changes, err error) {
	for _, part := range []struct {
		from []ir.Header
		to   *[]message.Field
	}{{c.Set, &changes.Set}, {c.Add, &changes.Add}, {namesOnly(c.Remove), &changes.Remove}} {
		for _, f := range part.from {
			if !httpguts.ValidHeaderFieldName(f.Name) || !httpguts.ValidHeaderFieldValue(f.Value) {
				return changes, fmt.Errorf("the header field %q: %q has characters in it that no header may have", f.Name, f.Value)
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

// requestHeaders changes the fields that the backend gets.
type requestHeaders struct{ changes message.Changes }

func newRequestHeaders(of ir.RequestHeaders) (Filter, error) {
	changes, err := changesOf(of.HeaderChanges)
	return &requestHeaders{changes}, err
}

func (h *requestHeaders) Apply(x *exchange.Exchange) (bool, error) {
	h.changes.Apply(&x.Fields)
	return false, nil
}

// responseHeaders changes the fields that the client gets from what is behind it. Those of answers to errors stay as they are.
type responseHeaders struct{ changes message.Changes }

func newResponseHeaders(of ir.ResponseHeaders) (Filter, error) {
	changes, err := changesOf(of.HeaderChanges)
	return &responseHeaders{changes}, err
}

func (h *responseHeaders) Apply(x *exchange.Exchange) (bool, error) {
	x.ChangeAnswer(&h.changes)
	return false, nil
}

// directResponse answers in place of the backend, and of the filters behind it.
type directResponse struct{ status int }

func newDirectResponse(of ir.DirectResponse) (Filter, error) {
	if of.Status < 200 || of.Status > 599 {
		return nil, fmt.Errorf("status_code %d is not one from 200 to 599", of.Status)
	}
	return &directResponse{of.Status}, nil
}

func (d *directResponse) Apply(x *exchange.Exchange) (bool, error) {
	return true, x.Respond(d.status, "")
}
