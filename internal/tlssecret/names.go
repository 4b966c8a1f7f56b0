package tlssecret

import (
	"crypto/x509"
	"fmt"
	"slices"
	"strings"

	"github.com/k8singress/k8singress/internal/report"
)

// Names are the names that a certificate is for, made for being asked at each handshake.
type Names struct {
	// exact and parents are sorted; parents are what stands behind "*." in wildcards.
	exact, parents []string
}

// NamesOf returns the names of a certificate. One without DNS names is for its common name, as in ingress-nginx and
// unlike in crypto/x509: it is what `openssl req -subj /CN=host` makes.
func NamesOf(leaf *x509.Certificate) Names {
	all := leaf.DNSNames
	if len(all) == 0 && leaf.Subject.CommonName != "" {
		all = []string{leaf.Subject.CommonName}
	}
	var n Names
	for _, name := range all {
		name = strings.ToLower(strings.TrimSuffix(name, "."))
		if parent, wildcard := strings.CutPrefix(name, "*."); wildcard {
			n.parents = append(n.parents, parent)
		} else {
			n.exact = append(n.exact, name)
		}
	}
	slices.Sort(n.exact)
	slices.Sort(n.parents)
	return n
}

// Cover says whether a host is among the names. A wildcard stands for one label, and covers itself. The host is in lower
// case and has no dot at its end.
func (n Names) Cover(host string) bool {
	if _, found := slices.BinarySearch(n.exact, host); found {
		return host != ""
	}
	label, parent, _ := strings.Cut(host, ".")
	if label == "" || parent == "" {
		return false
	}
	_, found := slices.BinarySearch(n.parents, parent)
	return found
}

// HasWildcards says whether one of the names is a wildcard.
func (n Names) HasWildcards() bool { return len(n.parents) > 0 }

// String lists the names for people.
func (n Names) String() string {
	quoted := make([]string, 0, report.MostListed)
	for _, name := range n.exact[:min(len(n.exact), report.MostListed)] {
		quoted = append(quoted, Quote(name))
	}
	for _, parent := range n.parents[:min(len(n.parents), report.MostListed)] {
		quoted = append(quoted, Quote("*."+parent))
	}
	if len(quoted) == 0 {
		return "no name"
	}
	return report.List(quoted, len(n.exact)+len(n.parents), report.MostListed)
}

// longest is how much of a name a message has room for.
const longest = 64

// Quote makes a name of a certificate, which may be anything, fit for a terminal and a line of a log.
func Quote(name string) string {
	if len(name) > longest {
		return fmt.Sprintf("%q...", name[:longest])
	}
	return fmt.Sprintf("%q", name)
}
