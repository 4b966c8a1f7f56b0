// Package annotations reads the annotations of an Ingress: one file for each feature, and table.go, which lists their rows.
package annotations

//go:generate go test -run ^TestReference$ -update

import (
	"strings"

	"github.com/k8singress/k8singress/internal/kinds"
	"github.com/k8singress/k8singress/internal/option"
)

const (
	// Prefix is that of ingress-nginx's annotations, which the names of their rows leave out.
	Prefix = "nginx.ingress.kubernetes.io/"
	// OwnPrefix is that of the annotations for what ingress-nginx has no word for. It is part of the names of their rows.
	OwnPrefix = kinds.OwnPrefix
)

// Annotation is one row of the table.
type Annotation = option.Row[Settings, string]

const (
	// ScopeIngress is the Ingress as a whole, or its hosts.
	ScopeIngress option.Scope = "ingress"
	// ScopeLocation is each path of the Ingress.
	ScopeLocation option.Scope = "location"
)

// The risks, as ingress-nginx ranks them.
const (
	RiskLow      option.Risk = "Low"
	RiskMedium   option.Risk = "Medium"
	RiskHigh     option.Risk = "High"
	RiskCritical option.Risk = "Critical"
)

// Key returns the whole key of an annotation by the name of its row.
func Key(name string) string {
	if strings.HasPrefix(name, OwnPrefix) {
		return name
	}
	return Prefix + name
}

// nameOf returns what the name of a row is, or would be, of a key, and whether it is one of ours or of ingress-nginx.
func nameOf(key string) (name string, ours bool) {
	if strings.HasPrefix(key, OwnPrefix) {
		return key, true
	}
	return strings.CutPrefix(key, Prefix)
}
