package issuance

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
)

// TestNewNamesOnlyChangeTheSummary checks that the names that clients choose change only the messages of summaries, in
// whatever order the names arrive, so that each name does not cause a line in the log.
func TestNewNamesOnlyChangeTheSummary(t *testing.T) {
	object := ir.Ref{Kind: kinds.Ingress, Namespace: "a", Name: "web"}
	var hosts []*host
	var first []string
	for n := range 50 {
		h := newHost(fmt.Sprintf("host-%02d.example", 99-n), object)
		h.demand, h.since = new(demand), time.Unix(int64(n), 0)
		if n%2 == 0 {
			h.lastError = new(failure)
		}
		hosts = append(hosts, h)
		v := verdict(object, slices.Clone(hosts))
		var separate, summaries []string
		for _, p := range v.Problems {
			if p.Summary {
				summaries = append(summaries, string(p.Reason))
				continue
			}
			separate = append(separate, p.Message)
		}
		if n < 2*maxProblems {
			first = separate
			continue
		}
		if !slices.Equal(separate, first) || !slices.Equal(summaries, []string{"ACMEFailed", "CertificatePending"}) {
			t.Fatalf("after %d names, %q are reported, and the summaries are about %q, instead of %q", n+1, separate,
				summaries, first)
		}
	}
	if len(first) != maxProblems || !strings.Contains(first[0], "host-99.example") {
		t.Errorf("reported separately: %q", first)
	}
	// Names in spec.tls are listed by name, whatever their age.
	for _, h := range hosts {
		h.demand, h.lastError = nil, new(failure)
	}
	if v := verdict(object, hosts); !strings.Contains(v.Problems[0].Message, "host-50.example") {
		t.Errorf("the first problem is %+v", v.Problems[0])
	}
}
