package secret

import (
	"crypto/x509"
	"fmt"
	"slices"
	"strings"

	"github.com/k8singress/k8singress/internal/model/report"
)

// Names holds the host names that a certificate covers, in a form for fast lookups during handshakes.
type Names struct {
	// exact holds the names that are not wildcards. parents holds the wildcards without the leading "*.". Both are
	// sorted.
	exact, parents []string
}

// NamesOf returns the names of a certificate. As in ingress-nginx, and unlike in crypto/x509, the common name is used
// if there are no DNS names. `openssl req -subj /CN=host` creates such certificates.
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

// Cover reports whether a certificate with these names is valid for a host. In a wildcard name, * stands for exactly
// one label. If host itself is a wildcard, only the same wildcard covers it. host must be in lower case and must not
// end with a dot.
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

// HasWildcards reports whether one of the names is a wildcard.
func (n Names) HasWildcards() bool { return len(n.parents) > 0 }

// String returns the names as a list for messages.
func (n Names) String() string {
	quoted := make([]string, 0, report.MaxListed)
	for _, name := range n.exact[:min(len(n.exact), report.MaxListed)] {
		quoted = append(quoted, Quote(name))
	}
	for _, parent := range n.parents[:min(len(n.parents), report.MaxListed)] {
		quoted = append(quoted, Quote("*."+parent))
	}
	if len(quoted) == 0 {
		return "no name"
	}
	return report.List(quoted, len(n.exact)+len(n.parents), report.MaxListed)
}

// longest is the length in bytes to which names from certificates are truncated in messages.
const longest = 64

// Quote quotes a name from a certificate for terminals and log messages, because such a name may contain any
// characters.
func Quote(name string) string {
	if len(name) > longest {
		return fmt.Sprintf("%q...", name[:longest])
	}
	return fmt.Sprintf("%q", name)
}
