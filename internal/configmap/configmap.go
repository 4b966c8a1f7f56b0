// Package configmap reads the ConfigMap of ingress-nginx: the options for all Ingresses, or for those of one class. table.go
// lists its keys.
package configmap

//go:generate go test -run ^TestReference$ -update

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/k8singress/k8singress/internal/annotations"
	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/option"
	"github.com/k8singress/k8singress/internal/panics"
	"github.com/k8singress/k8singress/internal/report"
)

// Config is what a ConfigMap says, as typed values.
type Config struct {
	// Defaults are for Ingresses whose annotations do not say otherwise.
	Defaults annotations.Settings
	// Global holds for every request. Its Streams are for the TCP and UDP ports, too, whose Service does not say otherwise.
	Global ir.Global
	// AddHeaders and SetHeaders are ConfigMaps, whose data ReadHeaders reads for Global.Headers; zero is none.
	AddHeaders, SetHeaders ir.Name

	// AnyPathType says that paths of any type may be regular expressions, for lint.
	AnyPathType bool

	// HTTPLogPath goes before the path of Global.AccessLog; Parse leaves it empty.
	HTTPLogPath string
	// Syslog goes before both.
	Syslog Syslog
}

// Parse reads the data of the ConfigMap for all Ingresses. base holds the options of the controller. A key that cannot be read is left out
// and reported; the others take effect. If such a key keeps requests out, Parse closes Defaults.
func Parse(base annotations.Settings, data map[string]string) (*Config, []report.Problem) {
	return read(base, data, false)
}

// ParseClass reads the data of the ConfigMap of one class on top of what holds for all. Keys that hold for the process as a
// whole have no effect there, and are reported.
func ParseClass(base annotations.Settings, data map[string]string) (annotations.Settings, []report.Problem) {
	config, problems := read(base, data, true)
	return config.Defaults, problems
}

// reading is a ConfigMap while its keys are read.
type reading struct {
	option.Reading[Config]
	class bool
}

// read makes a panic a problem of the ConfigMap that caused it. What it would have kept out is not known then.
func read(base annotations.Settings, data map[string]string, class bool) (config *Config, problems []report.Problem) {
	config = &Config{Defaults: base}
	r := reading{option.Reading[Config]{Settings: config, Invalid: report.InvalidEntry}, class}
	if caught := panics.Try(func() { r.all(data) }); caught != nil {
		*config = Config{Defaults: base}
		config.Defaults.Closed = true
		return config, []report.Problem{{
			Severity: report.Error, Reason: report.Quarantined, Field: "data", Message: fmt.Sprintf(
				"the ConfigMap is left out, because reading it fails: %v; all requests for %s get 503, because it may keep requests out",
				caught, r.closed()),
		}}
	}
	return config, r.Problems
}

// all reads all keys.
func (r *reading) all(data map[string]string) {
	config := r.Settings
	for _, name := range slices.Sorted(maps.Keys(data)) {
		r.one(name, strings.TrimSpace(data[name]))
	}
	config.Defaults.Finish()
	config.finishAccessLog()
	config.Global.TLS = config.Defaults.TLS
	if !r.class {
		config.Defaults.Tracing.Collected = config.Global.Collector.Host != ""
	}
	r.Check()
	slices.SortStableFunc(r.Problems, func(a, b report.Problem) int { return strings.Compare(a.Field, b.Field) })
}

// one reads one key. An empty value asks for nothing.
func (r *reading) one(name, value string) {
	row, field := Table.Find(name), "data["+name+"]"
	switch {
	case row == nil && value == "false" && fates[name] == fateLater:
		// It requests nothing that is missing.
	case row == nil:
		r.other(name, field)
	case row.Scope == process && r.class && value != "" && row.OnError != nil:
		row.OnError(r.Settings)
		r.Refuse(report.UnsupportedAccessControl, field, fmt.Sprintf("the key %s keeps requests out, and holds for the process as a whole: in the "+
			"ConfigMap of a class it has no effect, and all requests for %s get 503. Move it to the global ConfigMap", name, r.closed()))
	case row.Scope == process && r.class && value != "":
		r.Warn(report.UnknownKey, field, fmt.Sprintf(
			"the key %s holds for the process as a whole: it has an effect in the global ConfigMap only", name))
	default:
		r.Read(row, value, field)
	}
}
