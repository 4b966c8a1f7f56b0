package hosts_test

import (
	"testing"

	"github.com/k8singress/k8singress/internal/translate/hosts"
)

// TestPassthroughInMaintenance checks that TLS connections are not passed through if the path "/" is in maintenance,
// because passed-through connections do not pass the filter for maintenance.
func TestPassthroughInMaintenance(t *testing.T) {
	closed := func(c *hosts.Contribution) { c.Closed = true }
	maintained := func(c *hosts.Contribution) { c.Maintenance = true }
	mergeCases(t, "s.example", map[string]mergeCase{
		"of another Ingress": {
			of: []*hosts.Contribution{
				ingress("a/old", 1, rule("s.example", "/ web"), maintained),
				ingress("a/young", 2, rule("s.example", "/app web"), passing),
			},
			serves: []string{"prefix /app -> a/web/80", "prefix / -> a/web/80"},
			problems: []string{
				"warning InvalidAnnotation Ingress/a/young " +
					"metadata.annotations[nginx.ingress.kubernetes.io/ssl-passthrough]: the TLS connections " +
					"of the host s.example are not passed through, because Ingress/a/old is closed for " +
					"maintenance: the controller terminates TLS, and requests get 503",
			},
		},
		"of a closed Ingress": {
			of:     []*hosts.Contribution{ingress("a/old", 1, rule("s.example", "/ web"), passing, closed, maintained)},
			serves: []string{"prefix / -> a/web/80"},
			problems: []string{
				"error InvalidAnnotation Ingress/a/old " +
					"metadata.annotations[nginx.ingress.kubernetes.io/ssl-passthrough]: the TLS connections " +
					"of the host s.example are not passed through, because this Ingress rejects all requests " +
					"for the path /: the controller terminates TLS, and requests get 503. See its other " +
					"problems",
			},
		},
	})
}
