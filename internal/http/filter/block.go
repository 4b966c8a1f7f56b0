package filter

import (
	"net/netip"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/pattern"
)

// Block rejects requests before they are routed, by client network, User-Agent or Referer. It is immutable. A nil Block
// rejects no requests.
type Block struct {
	// all is true if every request must be rejected.
	all                  bool
	networks             *networks
	userAgents, referers *pattern.Texts
}

// NewBlock compiles the block lists of the ConfigMap. It returns nil if all lists are empty. If an entry is invalid,
// the Block rejects all requests. Normally this does not happen, because invalid entries are detected when the
// ConfigMap is read.
func NewBlock(of ir.Block) *Block {
	if len(of.Networks)+len(of.UserAgents)+len(of.Referers) == 0 {
		return nil
	}
	var errs [3]error
	b := &Block{}
	b.networks, errs[0] = newNetworks(of.Networks)
	b.userAgents, errs[1] = pattern.NewTexts(of.UserAgents)
	b.referers, errs[2] = pattern.NewTexts(of.Referers)
	b.all = errs != [3]error{}
	return b
}

// Refuses reports whether a request must be rejected. The list of networks does not apply to clients without an IP
// address.
func (b *Block) Refuses(x *exchange.Exchange) bool {
	if b == nil {
		return false
	}
	if b.all || b.userAgents.Has(x.Fields.JoinedKind(message.UserAgent)) ||
		b.referers.Has(x.Fields.JoinedKind(message.Referer)) {
		return true
	}
	if len(b.networks.all) == 0 {
		return false
	}
	ip, err := netip.ParseAddr(x.Client().IP)
	return err == nil && b.networks.has(ip)
}
