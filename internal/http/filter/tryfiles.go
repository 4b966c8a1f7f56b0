package filter

import (
	"errors"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
)

// tryFiles passes all requests to another location, or rejects them. named is true if the target is a name.
type tryFiles struct {
	ir.TryFiles
	named  bool
	target *nginx.Template
	// rejection rejects requests if there is no target.
	rejection *exchange.Failure
}

var errNoTarget = errors.New("there is neither a target nor a status")

func newTryFiles(of ir.TryFiles) (Filter, error) {
	h := &tryFiles{TryFiles: of, named: ir.IsNamedLocation(of.Target),
		rejection: exchange.Rejection(of.Status, "try_files of a snippet ends with this status")}
	if (of.Target == "") == (of.Status < 200 || of.Status > 999) {
		return nil, errNoTarget
	}
	var err error
	h.target, err = nginx.ParseTemplate(of.Target, nil)
	return h, err
}

func (h *tryFiles) Apply(x *exchange.Exchange) (bool, error) {
	switch {
	case h.Target == "" && h.Status < 400:
		return true, x.Respond(h.Status, "")
	case h.Target == "":
		return x.Reject(h.rejection)
	case h.named:
		x.Named = h.Target
		return false, exchange.ErrReroute
	}
	target, ok := h.target.ExpandWithin(maxValue, x.Variable)
	if !ok {
		return false, errTooLarge
	}
	if err := x.VariablesFailed(); err != nil {
		return false, err
	}
	if err := x.SetTarget(rooted(target)); err != nil {
		return false, err
	}
	return false, exchange.ErrReroute
}
