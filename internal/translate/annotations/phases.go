package annotations

import "github.com/k8singress/k8singress/internal/model/ir"

// phase is one step in the handling of a request. Name and Doc are for the documentation, which lists all phases.
type phase struct {
	Name, Doc string
	// filters returns the filters that the annotations add in this phase for one path. It is nil for phases that are
	// implemented elsewhere; a comment at the entry in phases says where.
	filters func(s *Settings, path string) []ir.Filter
}

// phases lists the steps in the order in which a request passes through them. This list also determines the order of
// the filters. See design/016 for the reasons.
var phases = []phase{
	// See Serve in package live.
	{Name: "blocked",
		Doc: "403 because of the [keys](configmap.md) `block-cidrs`, `block-user-agents` and `block-referers`"},
	// See checkPath in package live.
	{Name: "ambiguous paths",
		Doc: "400 for a path that an endpoint might interpret as a path with other access control"},
	// See beforeRoute in package live, for routes with a redirect from RedirectFor.
	{Name: "redirect to HTTPS",
		Doc: "see [TLS](tls.md#redirects); not for paths that return 503, or that redirect to another URL"},
	// See beforeRoute and admit in package live.
	{Name: "client certificates",
		Doc: "`auth-tls-*`; see [Client certificates](client-certificates.md#rejected-requests)"},
	{Name: "invalid access control", Doc: "503 for an Ingress with access control that is invalid or not supported",
		filters: (*Settings).closed},
	// See FiltersOfRoot. This phase applies only to requests for "/".
	{Name: "app-root", Doc: "the redirect of requests for `/`, which skip all later steps"},
	{Name: "CORS", Doc: "the response to OPTIONS, and headers of all responses from here on",
		filters: (*Settings).cors},
	{Name: "redirects", Doc: "`temporal-redirect`, `permanent-redirect`, and `rewrite-target` with a URL",
		filters: (*Settings).redirects},
	{Name: "limits", Doc: "`limit-connections`, `limit-rps` and `limit-rpm`", filters: (*Settings).limits},
	{
		Name: "access control", filters: (*Settings).access,
		Doc: "`denylist-source-range`, `allowlist-source-range`, `auth-type`, `auth-url`; with `satisfy: any`, one " +
			"of them is enough",
	},
	{Name: "bandwidth", Doc: "`limit-rate` and `limit-rate-after`, for responses from here on",
		filters: (*Settings).bandwidth},
	{Name: "chains", Doc: "`k8singress.io/chains`, in the order of the annotation", filters: (*Settings).chains},
	{Name: "Authorization", Doc: "the header is removed if `auth-type` used it", filters: (*Settings).withoutPassword},
	{Name: "rewrite", Doc: "`rewrite-target`; earlier steps use the client's path",
		filters: (*Settings).rewrite},
	{Name: "custom headers", Doc: "`custom-headers`, for responses from here on", filters: (*Settings).customHeaders},
	{
		Name: "mirror", filters: (*Settings).mirror,
		Doc: "`mirror-target` copies requests that reach this step, without the password for `auth-type`",
	},
	// See package proxy.
	{Name: "endpoints",
		Doc: "503 if there are none, 413 if the body is too large, and otherwise the endpoint, with retries"},
}
