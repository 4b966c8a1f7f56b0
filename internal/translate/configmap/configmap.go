// Package configmap parses the ConfigMap of ingress-nginx. It holds settings for all Ingresses, or for the Ingresses of
// one class. table.go lists its keys.
package configmap

//go:generate go test -run ^TestReference$ -update

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/option"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/process/panics"
	"github.com/k8singress/k8singress/internal/translate/annotations"
)

// Config holds the settings of a ConfigMap as typed values.
type Config struct {
	// Defaults are the settings of Ingresses without annotations.
	Defaults annotations.Settings
	// Global applies to every request. Global.Streams applies also to TCP and UDP ports whose Services have no settings
	// of their own.
	Global ir.Global
	// AddHeaders and SetHeaders name ConfigMaps for Global.Headers, which ReadHeaders parses. Zero means that there is
	// none.
	AddHeaders, SetHeaders ir.Name

	// AnyPathType means that paths of any type may be regular expressions. Only package lint uses it.
	AnyPathType bool

	// HTTPLogPath overrides the path of Global.AccessLog while keys are parsed. It is empty when Parse returns.
	HTTPLogPath string
	// Syslog overrides both paths.
	Syslog Syslog
}

// Parse parses the data of the ConfigMap for all Ingresses. base holds the options of the controller. An invalid key is
// reported and ignored, and the other keys take effect. If the invalid key may restrict access, Parse sets
// Defaults.Closed.
func Parse(base annotations.Settings, data map[string]string) (*Config, []report.Problem) {
	return read(base, data, false)
}

// ParseClass parses the data of the ConfigMap of one class. base holds the settings for all classes. Keys that apply to
// the whole process are reported and have no effect.
func ParseClass(base annotations.Settings, data map[string]string) (annotations.Settings, []report.Problem) {
	config, problems := read(base, data, true)
	return config.Defaults, problems
}

// reading is the state of parsing one ConfigMap.
type reading struct {
	option.Reading[Config]
	class bool
}

// read parses a ConfigMap. A panic becomes a problem of the ConfigMap, and Defaults.Closed is set, because the
// ConfigMap may restrict access.
func read(base annotations.Settings, data map[string]string, class bool) (config *Config, problems []report.Problem) {
	config = &Config{Defaults: base}
	r := reading{option.Reading[Config]{Settings: config, Invalid: report.InvalidEntry}, class}
	if caught := panics.Try(func() { r.all(data) }); caught != nil {
		*config = Config{Defaults: base}
		config.Defaults.Closed = true
		return config, []report.Problem{{
			Severity: report.Error, Reason: report.Quarantined, Field: "data", Message: fmt.Sprintf(
				"the ConfigMap has no effect, because reading it failed: %v. All requests for %s get 503, because "+
					"the ConfigMap may restrict access",
				caught, r.closed()),
		}}
	}
	return config, r.Problems
}

// all parses all keys.
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

// one parses one key. An empty value has no effect.
func (r *reading) one(name, value string) {
	row, field := Table.Find(name), "data["+name+"]"
	switch {
	case row == nil && value == "false" && fates[name] == fateLater:
		// The value false requests no feature that is missing here.
	case row == nil:
		r.other(name, field)
	case row.Scope == process && r.class && value != "" && row.OnError != nil:
		row.OnError(r.Settings)
		r.Refuse(report.UnsupportedAccessControl, field,
			fmt.Sprintf(
				"the key %s restricts access for the whole process, and has no effect in the ConfigMap of a class: "+
					"all requests for %s get 503 until you move it to the global ConfigMap",
				name, r.closed()))
	case row.Scope == process && r.class && value != "":
		r.Warn(report.UnknownKey, field, fmt.Sprintf(
			"the key %s applies to the whole process, and has no effect in the ConfigMap of a class: move it to the "+
				"global ConfigMap", name))
	default:
		r.Read(row, value, field)
	}
}
