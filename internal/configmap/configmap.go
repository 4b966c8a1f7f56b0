// Package configmap reads the ConfigMap of ingress-nginx: the options for all Ingresses. table.go lists its keys.
package configmap

import (
	"github.com/k8singress/k8singress/internal/annotations"
	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/report"
)

// Config is what a ConfigMap says, as typed values.
type Config struct {
	// Defaults are for Ingresses whose annotations do not say otherwise.
	Defaults annotations.Settings
	// Global holds for every request.
	Global ir.Global
}

// Parse reads the data of a ConfigMap. A key that cannot be read is left out and reported; the others count.
func Parse(data map[string]string) (*Config, []report.Problem) {
	return &Config{}, nil
}
