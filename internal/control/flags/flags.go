// Package flags parses the command-line flags of ingress-nginx, so that an existing Deployment of ingress-nginx only
// needs a different image and additional RBAC rules.
package flags

//go:generate go test -run ^TestReference$ -update

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/k8singress/k8singress/internal/model/nginx"
	"github.com/k8singress/k8singress/internal/model/option"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/model/settings"
)

// Row describes one flag. Default is ingress-nginx's default, and Scope is the Caddyfile option that has the same
// effect.
type Row = option.Row[Settings, string]

// Settings are the settings that the command-line flags can change.
type Settings struct {
	Config settings.Config
	// Debug sets the log level to DEBUG.
	Debug bool

	healthHost, healthPort string
	internalNodes          bool
	// webhook is the webhook of the flags. It is only used if its address is set.
	webhook settings.AdmissionWebhook
}

// leasePrefix is added to the name of the Lease, so that an ingress-nginx with the same flags in the same namespace
// uses a different Lease.
const leasePrefix = "k8singress-"

// Apply returns the options that result from the given flags. The flags take precedence over base, which holds the
// options in the Caddyfile. Options that are set in neither of them get ingress-nginx's defaults. If a problem has
// severity error, the process must not start. A warning means that a flag has no effect, or another one than its value
// says.
func Apply(base settings.Config, given Given) (Settings, []report.Problem) {
	s := Settings{Config: base}
	s.Config.NginxMetrics = base.NginxMetrics.Clone()
	s.Config.HealthMetrics, s.Config.HealthReady = true, true
	s.healthHost, s.healthPort, _ = net.SplitHostPort(base.Health)
	r := reading{option.Reading[Settings]{Settings: &s}, given}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if row := Table.Find(name); row != nil {
			r.read(row)
		}
	}
	r.Check()
	r.refusePairs()
	r.checkWebhook()
	if m := s.Config.NginxMetrics; m.UndefinedHosts && m.WithoutHost {
		r.Refuse("", "--metrics-per-undefined-host",
			"this flag needs the label host: remove --metrics-per-host=false, or this flag")
	}
	s.finish()
	return s, r.Problems
}

// pairs lists pairs of flags that cannot be used together, as in ingress-nginx.
var pairs = [][2]string{{"publish-service", "publish-status-address"}, {"watch-namespace", "watch-namespace-selector"}}

func (r *reading) refusePairs() {
	for _, pair := range pairs {
		if r.given.value(Table.Find(pair[0])) != "" && r.given.value(Table.Find(pair[1])) != "" {
			r.Refuse("", "--"+pair[1], fmt.Sprintf("this flag cannot be combined with --%s: remove one of them",
				pair[0]))
		}
	}
}

// checkWebhook reports flags of the webhook that need another flag. After an error, there is no webhook.
func (r *reading) checkWebhook() {
	const listen, certificate, key = "--validating-webhook", "--validating-webhook-certificate",
		"--validating-webhook-key"
	w := r.Settings.webhook
	refuse := func(flag, message string, args ...any) {
		r.Refuse("", flag, fmt.Sprintf(message, args...))
		r.Settings.webhook.Listen = ""
	}
	if w.Listen != "" && w.Certificate == "" && w.Key == "" && r.Settings.Config.AdmissionWebhook == nil {
		refuse(listen, "this flag needs %s and %s: add them, with the files of the certificate and of its private key",
			certificate, key)
	}
	for _, file := range []struct{ flag, path, other, otherPath, holds string }{
		{certificate, w.Certificate, key, w.Key, "private key"},
		{key, w.Key, certificate, w.Certificate, "certificate"},
	} {
		switch {
		case file.path == "":
		case w.Listen == "":
			r.Warn("", file.flag, fmt.Sprintf("this flag has no effect without %s, which starts the webhook: add "+
				"%[1]s=%s, or remove this flag", listen, settings.DefaultAdmissionWebhook))
		case file.otherPath == "":
			refuse(file.flag, "this flag needs %s: add it, with the file of the %s", file.other, file.holds)
		}
	}
}

// finish sets ingress-nginx's defaults for flags that are not given.
func (s *Settings) finish() {
	c := &s.Config
	if s.healthPort == "" {
		s.healthPort = "10254"
	}
	c.Health = net.JoinHostPort(s.healthHost, s.healthPort)
	if !c.HealthMetrics || c.NginxMetrics.Off {
		c.NginxMetrics = nil
	}
	if c.AutoHTTPS == "" {
		c.AutoHTTPS = settings.AutoHTTPSOff
	}
	if c.ElectionID == "" {
		c.ElectionID, c.ElectionFallback = leasePrefix+"ingress-controller-leader", "ingress-controller-leader"
	}
	if c.ElectionTTL == 0 {
		c.ElectionTTL = settings.Duration(30 * time.Second)
	}
	if c.PublishService.IsZero() && len(c.PublishAddress) == 0 && c.PublishNodes == "" &&
		c.Status != settings.StatusOff {
		c.PublishNodes = settings.PublishNodesExternal
		if s.internalNodes {
			c.PublishNodes = settings.PublishNodesInternal
		}
	}
	if c.Source == nil {
		c.Source = &settings.Source{Kubernetes: new(settings.Kubernetes)}
	}
	s.finishWebhook()
}

// finishWebhook adds the webhook of the flags to the options. As in ingress-nginx, the files alone start no webhook. If
// the Caddyfile configures a webhook, the flags only replace its address or its certificate.
func (s *Settings) finishWebhook() {
	if s.webhook.Listen == "" {
		return
	}
	w := s.webhook
	if base := s.Config.AdmissionWebhook; base != nil && w.Certificate == "" && w.Key == "" {
		w.Certificate, w.Key, w.Configuration = base.Certificate, base.Key, base.Configuration
	}
	s.Config.AdmissionWebhook = &w
}

// kubernetes returns the Kubernetes section of the options, and creates it if necessary.
func (s *Settings) kubernetes() *settings.Kubernetes {
	if s.Config.Source == nil {
		s.Config.Source = new(settings.Source)
	}
	if s.Config.Source.Kubernetes == nil {
		s.Config.Source.Kubernetes = new(settings.Kubernetes)
	}
	return s.Config.Source.Kubernetes
}

// Descriptions of the allowed values of flags, for Row.Values. A flag with the description boolean may be given without
// a value.
const (
	boolean  = "true or false"
	text     = "text"
	port     = "a port"
	seconds  = "a number of seconds"
	whole    = "a whole number"
	factor   = "a number"
	duration = "a duration such as 30s"
	named    = "namespace/name"
	path     = "a path"
	address  = "an address such as :8443"
	list     = "a list, separated by commas"
	bounds   = "a list of numbers, separated by commas"
)

// Format describes the values of a flag, so that a mistake can be found before the controller starts.
type Format struct {
	// Type is the name of the type in the help text: bool, string, number, duration, list or namespace/name.
	Type string
	// Pattern is a regular expression that matches all valid values, and also some that are not valid. It is not
	// anchored. Empty means that all texts are valid.
	Pattern string
	// Number is the type of values that are numbers, "integer" or "number". It is empty if numbers are not valid. The
	// values are from Min to Max. If both are 0, there are no limits.
	Number   string
	Min, Max float64
}

// The parts of patterns. Go parses numbers and durations in the same way as the flags of ingress-nginx.
const (
	anInteger = `[+-]?[0-9]+`
	aNumber   = `[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?`
	aDuration = `\+?(([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+`
)

var formats = map[string]Format{
	boolean:  {Type: "bool", Pattern: "true|false|True|False|TRUE|FALSE|t|f|T|F|1|0", Number: "integer", Max: 1},
	port:     {Type: "number", Pattern: "0*[1-9][0-9]{0,4}", Number: "integer", Min: 1, Max: 65535},
	seconds:  {Type: "number", Pattern: anInteger, Number: "integer", Max: maxSeconds},
	whole:    {Type: "number", Pattern: anInteger, Number: "integer"},
	factor:   {Type: "number", Pattern: aNumber, Number: "number"},
	duration: {Type: "duration", Pattern: aDuration},
	named:    {Type: "namespace/name", Pattern: "[^/]+/.+"},
	path:     {Type: "string", Pattern: "/.*"},
	address:  {Type: "string", Pattern: ".*:0*[1-9][0-9]{0,4}"},
	list:     {Type: "list"},
	bounds:   {Type: "list", Pattern: ` *` + aNumber + `( *, *([Ii]nf|\+[Ii]nf|` + aNumber + `))* *`, Number: "number"},
}

// FormatOf returns the format of a flag's values.
func FormatOf(row *Row) Format {
	if format, ok := formats[row.Values]; ok {
		return format
	}
	return Format{Type: "string"}
}

// Boolean reports whether a flag may be given without a value, which then means true.
func Boolean(row *Row) bool { return row.Values == boolean }

// set returns a parser for a flag. The parser converts the value of the flag with read and stores it in the given field
// of the options.
func set[T any](field func(*settings.Config) *T, read func(string) (T, error)) func(*Settings, string) error {
	return func(s *Settings, value string) error {
		v, err := read(value)
		if err == nil {
			*field(&s.Config) = v
		}
		return err
	}
}

// nginxMetric does the same as set for a field of the option nginx_metrics.
func nginxMetric[T any](
	field func(*settings.NginxMetrics) *T, read func(string) (T, error),
) func(*Settings, string) error {
	return func(s *Settings, value string) error {
		v, err := read(value)
		if nginx.IsUsable(err) {
			*field(s.Config.NginxMetrics) = v
		}
		return err
	}
}

func readBounds(s string) ([]float64, error) { return settings.ParseBounds(strings.Split(s, ",")) }

// readExcluded parses the names of metrics. ingress-nginx accepts every name, and its documentation names metrics that
// are not of requests, so the others are ignored with a warning.
func readExcluded(s string) ([]string, error) {
	var known, unknown []string
	names, _ := readList(s)
	for _, name := range names {
		name = strings.TrimPrefix(name, settings.NginxPrefix)
		if !slices.Contains(settings.NginxRequestMetrics, name) {
			unknown = append(unknown, name)
		} else if !slices.Contains(known, name) {
			known = append(known, name)
		}
	}
	if len(unknown) > 0 {
		return known, nginx.Remark(fmt.Sprintf("%s is not a metric of requests: write some of %s",
			strings.Join(unknown, ", "), strings.Join(settings.NginxRequestMetrics, ", ")))
	}
	return known, nil
}

// readMaxBuckets parses the flag max-buckets. In ingress-nginx, 0 means no limit.
func readMaxBuckets(s string) (int, error) {
	n, err := strconv.ParseUint(s, 10, 32)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%q is not a number of buckets, such as 100", s)
	case n == 0:
		return 0, nginx.Remark(fmt.Sprintf("0, which means no limit, is not supported: the limit is %d",
			settings.DefaultMaxBuckets))
	}
	return int(n), nil
}

func readText(s string) (string, error) { return s, nil }

func readBool(s string) (bool, error) {
	v, err := strconv.ParseBool(s)
	if err != nil {
		return false, fmt.Errorf("%q is neither true nor false", s)
	}
	return v, nil
}

// maxSeconds is the maximum of flags in seconds: a day.
const maxSeconds = 24 * 60 * 60

func readSeconds(s string) (settings.Duration, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || n > maxSeconds {
		return 0, fmt.Errorf("%q is not a number of seconds from 0 to %d", s, maxSeconds)
	}
	return settings.Duration(time.Duration(n) * time.Second), nil
}

func readDuration(s string) (settings.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil || d < settings.MinElectionTTL {
		return 0, fmt.Errorf("%q is not a duration of at least %s, such as 30s", s, settings.MinElectionTTL)
	}
	return settings.Duration(d), nil
}

func readPort(s string) (string, error) {
	if n, err := strconv.ParseUint(s, 10, 16); err != nil || n == 0 {
		return "", fmt.Errorf("%q is not a port from 1 to 65535", s)
	}
	return s, nil
}

// readAddress returns the listen address for a port.
func readAddress(s string) ([]string, error) {
	port, err := readPort(s)
	return []string{":" + port}, err
}

// readListen reads the listen address of the flag validating-webhook. Empty means that there is no webhook.
func readListen(s string) (string, error) {
	if s == "" {
		return "", nil
	}
	_, port, err := net.SplitHostPort(s)
	if err == nil {
		_, err = readPort(port)
	}
	if err != nil {
		return "", fmt.Errorf("%q is not an address to listen on, such as :8443", s)
	}
	return s, nil
}

func readList(s string) ([]string, error) {
	var list []string
	for part := range strings.SplitSeq(s, ",") {
		if part = strings.TrimSpace(part); part != "" {
			list = append(list, part)
		}
	}
	return list, nil
}

func readPath(s string) (string, error) {
	if !strings.HasPrefix(s, "/") || strings.ContainsAny(s, "?#*{} ") {
		return "", fmt.Errorf("%q is not a path: it must start with / and must not contain spaces or any of ?#*{}", s)
	}
	return s, nil
}

// readExternalNames converts the value of the flag disable-svc-external-name to a value of the option for ExternalName
// Services, or to "" for the default.
func readExternalNames(s string) (string, error) {
	off, err := readBool(s)
	if !off {
		return "", err
	}
	return settings.ExternalNamesOff, nil
}

// readElection converts the value of the flag disable-leader-election to a value of the option for leader election, or
// to "" for the default.
func readElection(s string) (string, error) {
	off, err := readBool(s)
	if !off {
		return "", err
	}
	return settings.ElectionOff, nil
}

// readUpdateStatus converts the value of the flag update-status to a value of the option for writing status, or to ""
// for the default.
func readUpdateStatus(s string) (string, error) {
	update, err := readBool(s)
	if update || err != nil {
		return "", err
	}
	return settings.StatusOff, nil
}

// readLevel parses the log verbosity of klog. From level 3 on, debug messages are logged.
func readLevel(s *Settings, value string) error {
	n, err := strconv.Atoi(value)
	if err != nil {
		return fmt.Errorf("%q is not a number", value)
	}
	s.Debug = n >= 3
	return nil
}

// The result of only is a parser for a flag whose behavior is fixed. The parser accepts just the value in the argument
// allowed. For any other value, it returns an error with the reason in the argument why.
func only(allowed, why string) func(*Settings, string) error {
	return func(_ *Settings, value string) error {
		if value == allowed {
			return nil
		}
		return nginx.Unsupported(why)
	}
}
