package render

import (
	"encoding/json"

	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/ir"
)

// proxyHandler returns the JSON of the proxy handler, which is the last handler of every chain.
func proxyHandler(p ir.Proxy) json.RawMessage {
	return document.EncodeModule("handler", "k8singress_proxy", p.WithDefaults())
}
