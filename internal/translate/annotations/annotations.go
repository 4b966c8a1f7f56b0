// Package annotations parses the annotations of an Ingress. Each feature has its own file, and table.go lists all
// annotations.
package annotations

//go:generate go test -run ^TestReference$ -update

import (
	"strings"

	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/model/option"
)

const (
	// Prefix is the prefix of ingress-nginx's annotations. The names of their rows do not contain it.
	Prefix = "nginx.ingress.kubernetes.io/"
	// OwnPrefix is the prefix of annotations for features that ingress-nginx does not have. The names of their rows
	// contain it.
	OwnPrefix = kinds.OwnPrefix
)

// Annotation is one row of the table.
type Annotation = option.Row[Settings, string]

const (
	// ScopeIngress is the scope of annotations that apply to the whole Ingress or to its hosts.
	ScopeIngress option.Scope = "ingress"
	// ScopeLocation is the scope of annotations that apply to each path of the Ingress.
	ScopeLocation option.Scope = "location"
)

// The risks of annotations, as ingress-nginx ranks them.
const (
	RiskLow      option.Risk = "Low"
	RiskMedium   option.Risk = "Medium"
	RiskHigh     option.Risk = "High"
	RiskCritical option.Risk = "Critical"
)

// Key returns the full key of the annotation with the given row name.
func Key(name string) string {
	if strings.HasPrefix(name, OwnPrefix) {
		return name
	}
	return Prefix + name
}

// nameOf returns the row name for a key. ours reports whether the key has one of our prefixes or ingress-nginx's.
func nameOf(key string) (name string, ours bool) {
	if strings.HasPrefix(key, OwnPrefix) {
		return key, true
	}
	return strings.CutPrefix(key, Prefix)
}
