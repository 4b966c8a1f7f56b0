package configmap

import (
	"errors"
	"fmt"
	"strings"

	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/nginx"
	"github.com/k8singress/k8singress/internal/pattern"
)

// mostFormatBytes is how long a format may be.
const mostFormatBytes = 8 << 10

// The rows of the access log.
var (
	disableAccessLog = Key{
		Name: "disable-access-log", Scope: process,
		Doc:    "Notes no requests.",
		Values: booleans, Example: "true", Default: "false",
		Parse: nginx.Into(func(c *Config) *bool { return &c.Global.AccessLog.Off }, nginx.Bool),
	}
	disableHTTPAccessLog = Key{
		Name: "disable-http-access-log", Scope: process,
		Doc:    "Notes no HTTP requests.",
		Values: booleans, Example: "true", Default: "false",
		Parse: func(c *Config, value string) error {
			off, err := nginx.Bool(value)
			c.Global.AccessLog.Off = c.Global.AccessLog.Off || err == nil && off
			return err
		},
	}
	accessLogPath = Key{
		Name: "access-log-path", Scope: process,
		Doc: "The file that requests are noted in. `" + ir.LogStdout + "` and `/dev/stdout` are the standard output. A file that was renamed is " +
			"made anew.",
		Values: "an absolute path", Example: "/var/log/access.log", Default: ir.LogStdout,
		Parse: nginx.Into(func(c *Config) *string { return &c.Global.AccessLog.Path }, readLogPath),
	}
	httpAccessLogPath = Key{
		Name: "http-access-log-path", Scope: process,
		Doc:    "access-log-path for HTTP requests alone.",
		Values: "an absolute path", Example: "/var/log/http.log", Default: "that of access-log-path",
		Parse: nginx.Into(func(c *Config) *string { return &c.HTTPLogPath }, readLogPath),
	}
	logFormatUpstream = Key{
		Name: "log-format-upstream", Scope: process,
		Doc: "What is noted of a request: text with [variables of nginx](https://nginx.org/en/docs/varindex.html) and of ingress-nginx. " +
			"The value of one that there is not here is `-`. Sizes are those of bodies; $request_length counts the head as HTTP/1.1 has it, " +
			"and the body if its length was said.",
		Values: "text with variables", Example: "$remote_addr $status $request_uri", Default: "that of ingress-nginx",
		Parse: nginx.Into(func(c *Config) *string { return &c.Global.AccessLog.Format }, readFormat),
	}
	logFormatEscapeJSON = Key{
		Name: "log-format-escape-json", Scope: process,
		Doc:    "Values are written as they stand in a string of JSON. The quotes around them are part of log-format-upstream.",
		Values: booleans, Example: "true", Default: "false",
		Parse: escape(ir.EscapeJSON),
	}
	logFormatEscapeNone = Key{
		Name: "log-format-escape-none", Scope: process,
		Doc:    "Values are written as they are, but for line breaks and other control characters, which no value may have here.",
		Values: booleans, Example: "true", Default: "false",
		Parse: escape(ir.EscapeNone),
	}
	skipAccessLogURLs = Key{
		Name: "skip-access-log-urls", Scope: process,
		Doc:    "Requests that are not noted: their path and query as the client has sent them, or a regular expression with `~` in front of it.",
		Values: "paths with commas between them", Example: "/healthz,/ready", Default: "none",
		Parse: nginx.Into(func(c *Config) *[]string { return &c.Global.AccessLog.Skip }, readSkipped), Lines: true,
	}
	enableAccessLogForDefaultBackend = Key{
		Name: "enable-access-log-for-default-backend", Scope: process,
		Doc:    "Notes requests for hosts and paths that no Ingress has, too.",
		Values: booleans, Example: "true", Default: "false",
		Parse: nginx.Into(func(c *Config) *bool { return &c.Global.AccessLog.Unknown }, nginx.Bool),
	}
)

func escape(as ir.LogEscape) func(*Config, string) error {
	return func(c *Config, value string) error {
		on, err := nginx.Bool(value)
		if err == nil && on {
			c.Global.AccessLog.Escape = as
		}
		return err
	}
}

// finishAccessLog has what is said of HTTP alone go first.
func (c *Config) finishAccessLog() {
	if c.HTTPLogPath != "" {
		c.Global.AccessLog.Path, c.HTTPLogPath = c.HTTPLogPath, ""
	}
}

func readLogPath(value string) (string, error) {
	switch {
	case strings.HasPrefix(value, "syslog:"):
		return "", nginx.Unsupported("syslog is not supported: the standard output is written to. Have what reads that send it on")
	case !strings.HasPrefix(value, "/") || strings.ContainsFunc(value, nginx.IsControl):
		return "", fmt.Errorf("%s is not an absolute path", nginx.Quote(value))
	}
	return value, nil
}

func readFormat(value string) (string, error) {
	switch {
	case len(value) > mostFormatBytes:
		return "", fmt.Errorf("it has %d bytes, and %d are the most", len(value), mostFormatBytes)
	case strings.ContainsFunc(value, nginx.IsControl):
		return "", errors.New("it has a line break or another control character in it")
	}
	split := nginx.SplitTemplate(value)
	if unknown := split.Unknown(nginx.LogVariables...); unknown != nil {
		return value, nginx.Partial("there is no variable $" + strings.Join(unknown, ", $") + " here: the value is -")
	}
	return value, nil
}

func readSkipped(value string) ([]string, error) {
	var entries []string
	for entry := range strings.SplitSeq(value, ",") {
		if entry = strings.TrimSpace(entry); entry == "" {
			continue
		}
		if _, _, err := pattern.CompileMarked(entry); err != nil {
			return nil, err
		}
		entries = append(entries, entry)
	}
	return entries, nil
}
