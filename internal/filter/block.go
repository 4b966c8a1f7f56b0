package filter

import (
	"net/netip"

	"github.com/k8singress/k8singress/internal/exchange"
	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/message"
	"github.com/k8singress/k8singress/internal/pattern"
)

// Block tells which requests no route is asked for. It is immutable; nil refuses none.
type Block struct {
	// all refuses every request.
	all                  bool
	networks             *networks
	userAgents, referers *pattern.Texts
}

// NewBlock compiles what the options say. What cannot be read refuses every request: the ConfigMap has been told before it came to that.
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

// Refuses says whether a request is none that may be answered. A client without an address is in no network.
func (b *Block) Refuses(x *exchange.Exchange) bool {
	if b == nil {
		return false
	}
	if b.all || b.userAgents.Has(x.Fields.JoinedKind(message.UserAgent)) || b.referers.Has(x.Fields.JoinedKind(message.Referer)) {
		return true
	}
	if len(b.networks.all) == 0 {
		return false
	}
	ip, err := netip.ParseAddr(x.Client().IP)
	return err == nil && b.networks.has(ip)
}
