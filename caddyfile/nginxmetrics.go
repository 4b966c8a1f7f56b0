package caddyfile

import (
	"errors"
	"fmt"
	"strings"

	"github.com/k8singress/k8singress/internal/model/settings"
)

// nginxMetricsSettings are the settings in the block of the option nginx_metrics. Each function parses the arguments
// of a setting.
var nginxMetricsSettings = map[string]func(*settings.NginxMetrics, []string) error{
	"without_host":    switchOn(func(m *settings.NginxMetrics) *bool { return &m.WithoutHost }),
	"undefined_hosts": switchOn(func(m *settings.NginxMetrics) *bool { return &m.UndefinedHosts }),
	"status_classes":  switchOn(func(m *settings.NginxMetrics) *bool { return &m.StatusClasses }),
	"exclude": func(m *settings.NginxMetrics, args []string) error {
		for i := range args {
			args[i] = strings.TrimPrefix(args[i], settings.NginxPrefix)
		}
		known := words("", settings.NginxRequestMetrics...)
		return names(func(m *settings.NginxMetrics) *[]string { return &m.Exclude }, known)(m, args)
	},
	"time_buckets":   bounds(func(m *settings.NginxMetrics) *[]float64 { return &m.TimeBuckets }),
	"length_buckets": bounds(func(m *settings.NginxMetrics) *[]float64 { return &m.LengthBuckets }),
	"size_buckets":   bounds(func(m *settings.NginxMetrics) *[]float64 { return &m.SizeBuckets }),
	"bucket_factor": func(m *settings.NginxMetrics, args []string) (err error) {
		if len(args) != 1 {
			return errors.New("it needs one argument: write a factor above 1, such as 1.1")
		}
		m.BucketFactor, err = settings.ParseBucketFactor(args[0])
		return err
	},
	"max_buckets":    positive(func(m *settings.NginxMetrics) *int { return &m.MaxBuckets }),
	"max_label_sets": positive(func(m *settings.NginxMetrics) *int { return &m.MaxLabelSets }),
}

func switchOn(field func(*settings.NginxMetrics) *bool) func(*settings.NginxMetrics, []string) error {
	return func(m *settings.NginxMetrics, args []string) error {
		if len(args) > 0 {
			return fmt.Errorf("it takes no argument; found %q", args[0])
		}
		*field(m) = true
		return nil
	}
}

func bounds(field func(*settings.NginxMetrics) *[]float64) func(*settings.NginxMetrics, []string) error {
	return func(m *settings.NginxMetrics, args []string) (err error) {
		*field(m), err = settings.ParseBounds(args)
		return err
	}
}

func positive(field func(*settings.NginxMetrics) *int) func(*settings.NginxMetrics, []string) error {
	return func(m *settings.NginxMetrics, args []string) error {
		if len(args) != 1 {
			return errors.New("it needs one argument: write a whole number of at least 1")
		}
		return number(func(*draft) *int { return field(m) })(nil, &line{args: args})
	}
}

// setNginxMetrics parses the option nginx_metrics:
//
//	nginx_metrics [off] {
//		<setting> [<arguments...>]
//	}
//
// The block may be missing. With off, it must be missing.
func setNginxMetrics(d *draft, l *line) error {
	if d.config.NginxMetrics != nil {
		return errors.New("it is set twice: put all settings into one block")
	}
	m, block := new(settings.NginxMetrics), len(l.tokens) > 1+len(l.args)
	d.config.NginxMetrics = m
	if len(l.args) == 1 {
		m.Off = true
		if block {
			return errors.New("a block has no effect with off: remove one of them")
		}
		return words("", "off")(l.args[0])
	}
	if err := parseBlock(l, m, nginxMetricsSettings, removeOne); err != nil {
		return err
	}
	if m.UndefinedHosts && m.WithoutHost {
		return errors.New("undefined_hosts has no effect with without_host: remove one of them")
	}
	return nil
}
