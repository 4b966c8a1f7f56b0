package filter

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/http/substitute"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
)

// substitution replaces texts in the bodies of responses (nginx's sub_filter). It changes the same responses as nginx,
// with two exceptions: an encoded body, which nginx searches without decoding it, and a partial response, because its
// Content-Range would be wrong.
type substitution struct {
	ir.Substitution
	from, to []*nginx.Template
	// allTypes is true if responses with any media type are changed.
	allTypes bool
	// texts and replacements are the texts if none of them has a variable. Otherwise texts is nil.
	texts        *substitute.Texts
	replacements [][]byte
}

func newSubstitution(of ir.Substitution) (Filter, error) {
	if len(of.Pairs) == 0 || len(of.Pairs) > substitute.MaxTexts {
		return nil, fmt.Errorf("there are %d pairs, but there must be 1 to %d", len(of.Pairs), substitute.MaxTexts)
	}
	h := &substitution{Substitution: of, allTypes: slices.Contains(of.Types, "*")}
	h.Types = []string{"text/html"}
	for _, name := range of.Types {
		h.Types = append(h.Types, strings.ToLower(name))
	}
	constant := true
	for _, pair := range of.Pairs {
		if pair.From == "" || len(pair.From) > substitute.MaxText {
			return nil, fmt.Errorf("a text to find has %d bytes, but it must have 1 to %d", len(pair.From),
				substitute.MaxText)
		}
		from, err := nginx.ParseTemplate(pair.From, nil)
		if err != nil {
			return nil, err
		}
		to, err := nginx.ParseTemplate(pair.To, nil)
		if err != nil {
			return nil, err
		}
		h.from, h.to = append(h.from, from), append(h.to, to)
		constant = constant && len(from.Variables())+len(to.Variables()) == 0
	}
	if constant {
		h.texts, h.replacements = h.expand(func(string) string { return "" })
	}
	return h, nil
}

func (h *substitution) Apply(x *exchange.Exchange) (bool, error) {
	w := &substitutingWriter{filter: h, x: x, holder: substitute.Holder{Writer: x.Writer}}
	w.Writer = substitute.NewWriter(&w.holder)
	x.Writer = w
	x.ResponseEnds = append(x.ResponseEnds, w.end)
	return false, nil
}

// The maximum total size in bytes of the texts and of the replacements for a response, if they have variables. Each
// byte of a text needs about 150 bytes of memory and 140 ns to prepare the search.
const (
	maxTexts        = 64 << 10
	maxReplacements = 1 << 20
)

// expand returns the texts and their replacements for a request. It leaves out a text that is empty, and a text that is
// too long, or has a replacement that is too long, because of variables. It returns nil if there is no text.
func (h *substitution) expand(lookup func(name string) string) (*substitute.Texts, [][]byte) {
	if h.texts != nil {
		return h.texts, h.replacements
	}
	var texts []string
	var replacements [][]byte
	left, leftTo := maxTexts, maxReplacements
	for i := range h.from {
		text, ok := h.from[i].ExpandWithin(min(left, substitute.MaxText), lookup)
		replacement, fits := h.to[i].ExpandWithin(leftTo, lookup)
		if text != "" && ok && fits {
			texts, replacements = append(texts, text), append(replacements, []byte(replacement))
			left, leftTo = left-len(text), leftTo-len(replacement)
		}
	}
	if texts == nil {
		return nil, nil
	}
	return substitute.NewTexts(texts), replacements
}

// changes reports whether texts are replaced in a response. A response with the status 304 has the fields of the
// response that the client already has, so its fields are changed, too.
func (h *substitution) changes(a *message.Response) bool {
	switch {
	case a.Status < http.StatusOK, a.Status == http.StatusNoContent, a.Status == http.StatusPartialContent:
		return false
	case a.Length == 0 && a.Status != http.StatusNotModified:
		return false
	}
	if encoding, _ := a.Fields.Joined("Content-Encoding"); encoding != "" {
		return false
	}
	return h.allTypes || slices.Contains(h.Types, a.MediaType())
}

// changed returns a copy of the fields of a response whose body is changed.
func (h *substitution) changed(fields message.Fields) message.Fields {
	fields = slices.Clone(fields)
	fields.Remove(message.Other, "Accept-Ranges")
	if h.KeepLastModified {
		fields.WeakenETag()
	} else {
		fields.Remove(message.Other, "Last-Modified")
		fields.Remove(message.Other, "ETag")
	}
	return fields
}

// substitutingWriter writes one response.
type substitutingWriter struct {
	substitute.Writer
	filter *substitution
	x      *exchange.Exchange
	// holder is the writer behind Writer. It holds back short responses, so that they have a Content-Length.
	holder substitute.Holder
	// over is true after the response of the chain. An error page, which is not changed, may follow.
	over bool
}

// Head writes the head of the response, and decides whether its body is changed.
func (w *substitutingWriter) Head(a *message.Response) error {
	if w.over || !w.filter.changes(a) {
		return w.Writer.Head(a)
	}
	texts, replacements := w.filter.expand(w.x.Variable)
	if texts == nil {
		return w.Writer.Head(a)
	}
	head := *a
	head.Fields, head.Length = w.filter.changed(a.Fields), -1
	bodiless := a.Status == http.StatusNotModified || w.x.Method == http.MethodHead
	if short := a.Length >= 0 && a.Length <= substitute.MaxHeld; short && !bodiless {
		w.holder.Hold(&head)
	} else if err := w.Writer.Head(&head); err != nil {
		return err
	}
	if !bodiless {
		w.Begin(texts, replacements, w.filter.Repeat, a.Length)
	}
	return nil
}

func (w *substitutingWriter) end(err error) error {
	w.over = true
	failed := w.End(err != nil)
	if failed == nil {
		failed = w.holder.End(err != nil)
	}
	if failed != nil {
		w.Abort()
		return fmt.Errorf("%w: replacing texts in the response: %w", exchange.ErrAborted, failed)
	}
	return err
}
