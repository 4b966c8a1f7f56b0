package proxy

import (
	"net/http"

	"github.com/k8singress/k8singress/internal/ir"
)

// edits change headers of the answers of endpoints on their way to the client, by the name of the header. Each returns the
// new value of one of them; variable has the values of nginx variables.
type edits map[string]func(value string, variable func(name string) string) string

// newEdits returns the edits that the settings ask for. They hold for both ways to an endpoint, and for FastCGI.
func newEdits(*ir.Forwarding) (edits, error) { return nil, nil }

// edit changes the headers of an answer.
func (x *Exchange) edit(header http.Header) {
	for name, change := range x.settings.edits {
		for i, value := range header[name] {
			header[name][i] = change(value, x.endpoints.Variable)
		}
	}
}

// editHead changes the headers of the answer to an ordinary request.
func (x *Exchange) editHead(a *answer) {
	if a.long != nil {
		x.edit(a.long.Header)
		return
	}
	if len(x.settings.edits) == 0 {
		return
	}
	for i, f := range a.head.fields {
		if change := x.settings.edits[f.name]; change != nil {
			a.head.fields[i].value = change(f.value, x.endpoints.Variable)
		}
	}
}
