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
	// Prefix is the prefix of ingress-nginx's annotations. The names in Table omit this prefix.
	Prefix = "nginx.ingress.kubernetes.io/"
	// OwnPrefix is the prefix of annotations for features that ingress-nginx does not have. The names in Table include
	// this prefix.
	OwnPrefix = kinds.OwnPrefix
)

// Annotation is one row of Table: an annotation with its documentation and its parser.
type Annotation = option.Row[Settings, string]

const (
	// ScopeIngress is the scope of annotations that apply to the whole Ingress or to its hosts.
	ScopeIngress option.Scope = "ingress"
	// ScopeLocation is the scope of annotations that apply to each path of the Ingress.
	ScopeLocation option.Scope = "location"
)

// The risk levels that ingress-nginx assigns to annotations.
const (
	RiskLow      option.Risk = "Low"
	RiskMedium   option.Risk = "Medium"
	RiskHigh     option.Risk = "High"
	RiskCritical option.Risk = "Critical"
)

// Key returns the complete annotation key for a name in Table.
func Key(name string) string {
	if strings.HasPrefix(name, OwnPrefix) {
		return name
	}
	return Prefix + name
}

// nameOf returns the name in Table for an annotation key. ours reports whether the key starts with OwnPrefix or Prefix.
func nameOf(key string) (name string, ours bool) {
	if strings.HasPrefix(key, OwnPrefix) {
		return key, true
	}
	return strings.CutPrefix(key, Prefix)
}
