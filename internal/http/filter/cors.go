package filter

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/model/ir"
)

const (
	allowOrigin = "Access-Control-Allow-Origin"
	anyOrigin   = "*"
)

// cors adds the CORS headers to responses and responds to OPTIONS requests.
type cors struct {
	// all is true if all origins are allowed. exact lists allowed origins in lower case. wild lists allowed origins
	// whose host starts with a wildcard label.
	all   bool
	exact []string
	wild  []wildOrigin
	// fields are the header fields, besides Access-Control-Allow-Origin, for responses to allowed origins. open
	// contains the changes to a response if all origins are allowed. closed contains the changes if the request's
	// origin is not allowed.
	fields       []message.Field
	open, closed *message.Changes
}

// wildOrigin is an allowed origin, divided into the parts before and after its wildcard label.
type wildOrigin struct{ before, behind string }

func newCORS(of ir.CORS) (Filter, error) {
	h := &cors{}
	for _, f := range []struct{ name, value string }{
		{"Access-Control-Allow-Credentials", map[bool]string{true: "true"}[of.Credentials]},
		{"Access-Control-Allow-Methods", of.Methods},
		{"Access-Control-Allow-Headers", of.Headers}, {"Access-Control-Expose-Headers", of.Expose},
		{"Access-Control-Max-Age", strconv.Itoa(of.MaxAge)},
	} {
		if !httpguts.ValidHeaderFieldValue(f.value) {
			return nil, fmt.Errorf("%s: %q contains characters that are not allowed in a header", f.name, f.value)
		}
		if f.value != "" {
			h.fields = append(h.fields, message.NewField(f.name, f.value))
		}
	}
	for _, origin := range of.Origins {
		before, behind, wild := strings.Cut(origin, "*")
		switch {
		case origin == anyOrigin:
			h.all = true
		case wild:
			h.wild = append(h.wild, wildOrigin{before, behind})
		default:
			h.exact = append(h.exact, origin)
		}
	}
	vary := []message.Field{message.NewField("Vary", "Origin")}
	h.open, h.closed = h.changes(anyOrigin, nil), &message.Changes{Add: vary}
	return h, nil
}

// changes returns the header changes for a response to an allowed origin.
func (h *cors) changes(origin string, add []message.Field) *message.Changes {
	return &message.Changes{Set: append([]message.Field{message.NewField(allowOrigin, origin)}, h.fields...), Add: add}
}

// noContent is the Content-Type of responses to OPTIONS requests. As in ingress-nginx, the semicolon before charset is
// missing.
var noContent = message.ContentType.Field("text/plain charset=UTF-8")

func (h *cors) Apply(x *exchange.Exchange) (bool, error) {
	changes := h.closed
	if h.all {
		changes = h.open
	} else if origin := x.Fields.Get(message.Origin); h.allows(origin) {
		changes = h.changes(origin, h.closed.Add)
	}
	// CORS headers are also added to error responses.
	x.ForAllResponses = slices.Concat(x.ForAllResponses, exchange.Changes{changes})
	if changes == h.closed || x.Method != http.MethodOptions {
		return false, nil
	}
	return true, x.Respond(http.StatusNoContent, "", noContent)
}

// allows reports whether an origin is allowed. As in ingress-nginx, it ignores case.
func (h *cors) allows(origin string) bool {
	origin = strings.ToLower(origin)
	if slices.Contains(h.exact, origin) {
		return true
	}
	for _, wild := range h.wild {
		label, ok := strings.CutPrefix(origin, wild.before)
		if label, ok2 := strings.CutSuffix(label, wild.behind); ok && ok2 && isLabel(label) {
			return true
		}
	}
	return false
}

func isLabel(text string) bool {
	for _, r := range text {
		if r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') {
			return false
		}
	}
	return text != ""
}
