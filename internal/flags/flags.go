// Package flags reads the command line of ingress-nginx, so that a Deployment of it works with another image
// and the rights of the controller.
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

	"github.com/k8singress/k8singress/internal/nginx"
	"github.com/k8singress/k8singress/internal/option"
	"github.com/k8singress/k8singress/internal/report"
	"github.com/k8singress/k8singress/internal/settings"
)

// Row is one flag. Its Default is that of ingress-nginx, and its Scope the option of the Caddyfile that it stands for.
type Row = option.Row[Settings, string]

// Settings are what flags change.
type Settings struct {
	Config settings.Config
	// Debug asks for log lines of the level DEBUG.
	Debug bool

	healthHost, healthPort string
	internalNodes          bool
}

// leasePrefix keeps the Lease apart from that of an ingress-nginx which runs beside this controller with the same flags.
const leasePrefix = "k8singress-"

// Apply returns the options that flags stand for, given by their names without dashes, on top of those of a Caddyfile: a flag that is
// given counts before what the Caddyfile says, and that before what ingress-nginx does without the flag. A problem that is an error
// is to end the start; a warning names a flag without effect.
func Apply(base settings.Config, given map[string]string) (Settings, []report.Problem) {
	s := Settings{Config: base}
	s.Config.HealthMetrics, s.Config.HealthReady = true, true
	s.healthHost, s.healthPort, _ = net.SplitHostPort(base.Health)
	r := option.Reading[Settings]{Settings: &s}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		row := Table.Find(name)
		if row == nil {
			continue
		}
		if row.Ignored != "" {
			r.Warn("", "--"+name, "it has no effect: "+row.Ignored)
		}
		r.Read(row, given[name], "--"+name)
	}
	r.Check()
	refusePairs(&r, given)
	s.finish()
	return s, r.Problems
}

// pairs are flags that exclude each other, there as here.
var pairs = [][2]string{{"publish-service", "publish-status-address"}, {"watch-namespace", "watch-namespace-selector"}}

func refusePairs(r *option.Reading[Settings], given map[string]string) {
	for _, pair := range pairs {
		if given[pair[0]] != "" && given[pair[1]] != "" {
			r.Refuse("", "--"+pair[1], fmt.Sprintf("--%s is given, too: give one of them", pair[0]))
		}
	}
}

// finish fills in what ingress-nginx does without flags.
func (s *Settings) finish() {
	c := &s.Config
	if s.healthPort == "" {
		s.healthPort = "10254"
	}
	c.Health = net.JoinHostPort(s.healthHost, s.healthPort)
	if c.AutoHTTPS == "" {
		c.AutoHTTPS = settings.AutoHTTPSOff
	}
	if c.ElectionID == "" {
		c.ElectionID, c.ElectionFallback = leasePrefix+"ingress-controller-leader", "ingress-controller-leader"
	}
	if c.ElectionTTL == 0 {
		c.ElectionTTL = settings.Duration(30 * time.Second)
	}
	if c.PublishService.IsZero() && len(c.PublishAddress) == 0 && c.PublishNodes == "" && c.Status != settings.StatusOff {
		c.PublishNodes = settings.PublishNodesExternal
		if s.internalNodes {
			c.PublishNodes = settings.PublishNodesInternal
		}
	}
	if c.Source == nil {
		c.Source = &settings.Source{Kubernetes: new(settings.Kubernetes)}
	}
}

// kubernetes is the API server that objects come from.
func (s *Settings) kubernetes() *settings.Kubernetes {
	if s.Config.Source == nil {
		s.Config.Source = new(settings.Source)
	}
	if s.Config.Source.Kubernetes == nil {
		s.Config.Source.Kubernetes = new(settings.Kubernetes)
	}
	return s.Config.Source.Kubernetes
}

// The words for Row.Values. A flag that takes boolean may stand without a value.
const (
	boolean  = "true or false"
	text     = "text"
	number   = "a number"
	duration = "a duration such as 30s"
	named    = "namespace/name"
)

// Boolean says whether the flag may stand without a value, and means true then.
func Boolean(row *Row) bool { return row.Values == boolean }

// set reads a value into a field of the options.
func set[T any](field func(*settings.Config) *T, read func(string) (T, error)) func(*Settings, string) error {
	return func(s *Settings, value string) error {
		v, err := read(value)
		if err == nil {
			*field(&s.Config) = v
		}
		return err
	}
}

func readText(s string) (string, error) { return s, nil }

func readBool(s string) (bool, error) {
	v, err := strconv.ParseBool(s)
	if err != nil {
		return false, fmt.Errorf("%q is neither true nor false", s)
	}
	return v, nil
}

func readSeconds(s string) (settings.Duration, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || n > 24*60*60 {
		return 0, fmt.Errorf("%q is no number of seconds", s)
	}
	return settings.Duration(time.Duration(n) * time.Second), nil
}

func readDuration(s string) (settings.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil || d < settings.LeastElectionTTL {
		return 0, fmt.Errorf("%q is no duration of %s or more, such as 30s", s, settings.LeastElectionTTL)
	}
	return settings.Duration(d), nil
}

func readPort(s string) (string, error) {
	if n, err := strconv.ParseUint(s, 10, 16); err != nil || n == 0 {
		return "", fmt.Errorf("%q is no port: they are 1 to 65535", s)
	}
	return s, nil
}

// readAddress makes the address of a server out of a port.
func readAddress(s string) ([]string, error) {
	port, err := readPort(s)
	return []string{":" + port}, err
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
		return "", fmt.Errorf("%q is no path: it begins with / and has none of ?#*{} in it", s)
	}
	return s, nil
}

// readExternalNames reads disable-svc-external-name.
func readExternalNames(s string) (string, error) {
	off, err := readBool(s)
	if !off {
		return "", err
	}
	return settings.ExternalNamesOff, nil
}

// readElection reads disable-leader-election.
func readElection(s string) (string, error) {
	off, err := readBool(s)
	if !off {
		return "", err
	}
	return settings.ElectionOff, nil
}

// readUpdateStatus reads update-status.
func readUpdateStatus(s string) (string, error) {
	update, err := readBool(s)
	if update || err != nil {
		return "", err
	}
	return settings.StatusOff, nil
}

// readLevel reads the verbosity of klog, whose third level tells of each change.
func readLevel(s *Settings, value string) error {
	n, err := strconv.Atoi(value)
	if err != nil {
		return fmt.Errorf("%q is no number", value)
	}
	s.Debug = n >= 3
	return nil
}

// only takes the one value that means what holds here anyway.
func only(allowed, why string) func(*Settings, string) error {
	return func(_ *Settings, value string) error {
		if value == allowed {
			return nil
		}
		return nginx.Unsupported(why)
	}
}
