// Package configmap parses the controller's ConfigMap, which has the same keys as in ingress-nginx. A ConfigMap holds
// settings for all Ingresses, or for the Ingresses of one class. table.go lists the keys.
package configmap

//go:generate go test -run ^TestReference$ -update

import (
	"fmt"
	"slices"
	"strings"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/option"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/process/panics"
	"github.com/k8singress/k8singress/internal/translate/annotations"
)

// Config holds the parsed settings of a ConfigMap.
type Config struct {
	// Defaults are the settings that apply to an Ingress without annotations.
	Defaults annotations.Settings
	// Global holds settings that apply to every request. Global.Streams applies to the TCP and UDP ports whose Services
	// do not configure these settings.
	Global ir.Global
	// AddHeaders and SetHeaders are the names of the ConfigMaps that contain Global.Headers. ReadHeaders parses them.
	// The zero value means that no ConfigMap is set.
	AddHeaders, SetHeaders ir.Name

	// AnyPathType is true if paths of any path type may contain regular expressions. Only package lint uses it.
	AnyPathType bool

	// HTTPLogPath is the value of http-access-log-path, which overrides the path in Global.AccessLog. It is only set
	// while keys are parsed, and empty when Parse returns.
	HTTPLogPath string
	// Syslog, if enabled, overrides HTTPLogPath and the path in Global.AccessLog.
	Syslog Syslog
}

// Parse parses the data of the ConfigMap for all Ingresses. base holds the settings from the controller's options. An
// invalid key is ignored and reported. If an invalid key may restrict access, Parse sets Defaults.Closed, so that all
// requests get 503.
func Parse(base annotations.Settings, data map[string]string) (*Config, []report.Problem) {
	return read(base, data, false)
}

// ParseClass parses the data of the ConfigMap for one IngressClass. base holds the settings for all Ingresses. Keys
// that apply to the whole process are ignored and reported.
func ParseClass(base annotations.Settings, data map[string]string) (annotations.Settings, []report.Problem) {
	config, problems := read(base, data, true)
	return config.Defaults, problems
}

// reading is the state of the parser while it parses one ConfigMap.
type reading struct {
	option.Reading[Config]
	class bool
}

// read parses a ConfigMap. class reports whether it is the ConfigMap of an IngressClass. If parsing panics, read
// reports a problem. Because the ConfigMap may restrict access, it then also sets Defaults.Closed, so that all requests
// get 503.
func read(base annotations.Settings, data map[string]string, class bool) (config *Config, problems []report.Problem) {
	config = &Config{Defaults: base}
	r := reading{option.Reading[Config]{Settings: config, Invalid: report.InvalidEntry}, class}
	if caught := panics.Try(func() { r.all(data) }); caught != nil {
		*config = Config{Defaults: base}
		config.Defaults.Closed, config.Defaults.ClosedBy = true, "reading it failed"
		return config, []report.Problem{{
			Severity: report.Error, Reason: report.Quarantined, Field: "data", Message: fmt.Sprintf(
				"the ConfigMap has no effect, because reading it failed: %v. All requests for %s get 503, because "+
					"the ConfigMap may restrict access",
				caught, r.closed()),
		}}
	}
	return config, r.Problems
}

// The method all parses all keys of the ConfigMap.
func (r *reading) all(data map[string]string) {
	config := r.Settings
	// Other values may contain the variables that these keys define.
	names := option.Names(data, httpSnippet.Name, annotations.ServersSnippet.Name)
	for _, name := range names {
		was := config.Defaults.Closed
		if r.one(name, strings.TrimSpace(data[name])); config.Defaults.Closed && !was {
			cause := &r.Problems[len(r.Problems)-1]
			config.Defaults.ClosedBy = cause.Field + ": " + cause.Message
		}
	}
	if !r.class {
		config.Defaults.Asked.Tracing.Collected = config.Global.Collector.Host != ""
		config.Defaults.Asked.Snippets.Server.MaxHead = config.Global.Connections.MaxHead
	}
	config.Defaults.Finish()
	config.Defaults.FindInServers()
	config.finishAccessLog()
	if !r.class {
		r.readRealIP()
	}
	config.Global.TLS = config.Defaults.TLS
	if config.Defaults.HTTP != nil {
		config.Global.Variables = config.Defaults.HTTP.Variables
	}
	r.Check()
	slices.SortStableFunc(r.Problems, func(a, b report.Problem) int { return strings.Compare(a.Field, b.Field) })
}

// The method one parses one key of the ConfigMap. An empty value is ignored.
func (r *reading) one(name, value string) {
	row, field := Table.Find(name), "data["+name+"]"
	switch {
	case row == nil && value == "false" && fates[name] == fateLater:
		// An unsupported key with the value false causes no warning, because the value disables the feature anyway.
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
	case r.class && r.hasRealIP(name, value):
		row.OnError(r.Settings)
		r.Refuse(report.UnsupportedAccessControl, field, fmt.Sprintf(
			"set_real_ip_from, real_ip_header and real_ip_recursive apply to the whole process, and have no effect in "+
				"the ConfigMap of a class: all requests for %s get 503 until you move them to the global ConfigMap",
			r.closed()))
	default:
		r.Read(row, value, field)
	}
}
