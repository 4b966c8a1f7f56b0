package live

import (
	"strings"

	"github.com/k8singress/k8singress/internal/http/meter"
	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/ir"
)

// labelsOf returns the labels of the counters for a destination of the route d of a host. share is the share of the
// destination, or nil if the route has only one destination.
func labelsOf(host string, d *document.Route, share *document.Share) meter.Labels {
	origin, to := ir.ParseRef(d.Origin), &d.Destination
	if share != nil {
		to = &share.Destination
	}
	labels := meter.Labels{
		Namespace: origin.Namespace, Ingress: origin.Name, Service: serviceOf(to.Backend), Host: host, Path: d.Path,
	}
	if share == nil || share.Canary == "" {
		return labels
	}
	canary := ir.ParseRef(share.Canary)
	labels.Canary, labels.MainIngress = to.Backend, origin.Name
	labels.Namespace, labels.Ingress = canary.Namespace, canary.Name
	for _, other := range d.Split {
		if other.Canary == "" {
			labels.MainService = serviceOf(other.Backend)
		}
	}
	return labels
}

// serviceOf returns the Service in the ID of a backend.
func serviceOf(backend string) string {
	_, rest, _ := strings.Cut(backend, "/")
	service, _, _ := strings.Cut(rest, "/")
	return service
}
