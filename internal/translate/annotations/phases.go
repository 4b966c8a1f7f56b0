package annotations

import "github.com/k8singress/k8singress/internal/model/ir"

// phase is one step in the handling of a request. Name and Doc are for the documentation, which lists all phases.
type phase struct {
	Name, Doc string
	// filters returns the filters that the annotations add in this phase, for one path. It is nil for phases that are
	// implemented elsewhere, and their comments say where.
	filters func(s *Settings, path string) []ir.Filter
}

// phases are the steps in the order in which a request passes them. This list determines the order, and design/016
// gives the reasons.
var phases = []phase{
	// See Serve in package live.
	{Name: "blocked", Doc: "403 by the [keys](configmap.md) `block-cidrs`, `block-user-agents` and `block-referers`"},
	// See checkPath in package live.
	{Name: "ambiguous paths", Doc: "400 for a path that an endpoint could read as one with another guard"},
	// See beforeRoute in package live, for routes with a redirect from RedirectFor.
	{Name: "redirect to HTTPS",
		Doc: "[TLS](tls.md#redirects) says when; a path that is closed, or leads to another URL, has none"},
	// See beforeRoute and admit in package live.
	{Name: "client certificates", Doc: "`auth-tls-*`, with [what is refused](client-certificates.md#rejected-requests)"},
	{Name: "closed", Doc: "503 for an Ingress with something that may keep requests out and cannot be done",
		filters: (*Settings).closed},
	// See FiltersOfRoot. This phase is only for "/".
	{Name: "app-root", Doc: "for requests for `/` alone, which meet nothing of what follows"},
	{Name: "CORS", Doc: "the answer to OPTIONS, and the headers of all answers from here on",
		filters: (*Settings).cors},
	{Name: "redirects", Doc: "`temporal-redirect`, `permanent-redirect`, and a `rewrite-target` that is a URL",
		filters: (*Settings).redirects},
	{Name: "limits", Doc: "`limit-connections`, `limit-rps` and `limit-rpm`", filters: (*Settings).limits},
	{
		Name: "guards", filters: (*Settings).access,
		Doc: "`denylist-source-range`, `allowlist-source-range`, then `auth-type`, then `auth-url`; with `satisfy: " +
			"any`, one of them will do",
	},
	{Name: "bandwidth", Doc: "`limit-rate` and `limit-rate-after`, on answers from here on",
		filters: (*Settings).bandwidth},
	{Name: "chains", Doc: "`k8singress.io/chains`, in the order of the annotation", filters: (*Settings).chains},
	{Name: "Authorization", Doc: "taken away where `auth-type` has asked for it", filters: (*Settings).withoutPassword},
	{Name: "rewrite", Doc: "`rewrite-target`: what stands before it sees the path of the client",
		filters: (*Settings).rewrite},
	{Name: "custom headers", Doc: "`custom-headers`, on answers from here on", filters: (*Settings).customHeaders},
	{
		Name: "mirror", filters: (*Settings).mirror,
		Doc: "`mirror-target`: requests that have come this far are copied, without a password that `auth-type` has " +
			"asked for",
	},
	// See package proxy.
	{Name: "endpoints", Doc: "503 without any; 413 for a body that is too large; and the endpoint, with retries"},
}
