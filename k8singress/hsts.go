package k8singress

import (
	"net/http"
)

// strictTransport is the header by which browsers are told to ask by HTTPS only.
const strictTransport = "Strict-Transport-Security"

// demandTLS adds the HSTS header to the answer, as ingress-nginx does: if the connection itself is TLS, whatever a proxy in
// front says, and whatever the answer is. What is there already is the administrator's. It says whether it has added one.
func (h *Handler) demandTLS(w http.ResponseWriter, r *http.Request) bool {
	if r.TLS == nil {
		return false
	}
	value := h.table.HSTS()
	if value == "" {
		return false
	}
	header := w.Header()
	if _, ok := header[strictTransport]; ok {
		return false
	}
	// A slice of its own: Caddy's header handler writes into those that it finds.
	header[strictTransport] = []string{value}
	return true
}
