package live

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/k8singress/k8singress/internal/ir"
)

// redirect answers a request that came without TLS with the way to HTTPS. It returns false if the request came by HTTPS to
// a proxy in front, whose word counts.
func (t *Table) redirect(w http.ResponseWriter, r *http.Request, to *ir.HTTPSRedirect) bool {
	client := t.Clients().Of(r)
	if client.Proto != "http" {
		return false
	}
	host := client.Hostname()
	if host == "" {
		// HTTP/1.0 need not say whom it asks. There is no other place to send it to, and it may not stay here.
		w.WriteHeader(http.StatusBadRequest)
		return true
	}
	if to.Port != 0 {
		host += ":" + strconv.Itoa(to.Port)
	}
	uri := originalURI(r)
	if !to.KeepSlash {
		uri = strings.TrimSuffix(uri, "/")
	}
	w.Header()["Location"] = []string{"https://" + host + uri}
	w.WriteHeader(to.Status)
	return true
}
