package configmap

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
	"github.com/k8singress/k8singress/internal/model/option"
	"github.com/k8singress/k8singress/internal/model/pattern"
)

// mostFormatBytes is the maximum length of a log format, in bytes.
const mostFormatBytes = 8 << 10

// The keys for the access log.
var (
	disableAccessLog = Key{
		Name: "disable-access-log", Scope: process,
		Doc:    "Notes neither requests nor connections of TCP and UDP ports.",
		Values: booleans, Example: "true", Default: "false",
		Parse: logOff(func(c *Config) []*bool { return []*bool{&c.Global.AccessLog.Off, &c.Global.StreamLog.Off} }),
	}
	disableHTTPAccessLog = Key{
		Name: "disable-http-access-log", Scope: process,
		Doc:    "Notes no HTTP requests.",
		Values: booleans, Example: "true", Default: "false",
		Parse: logOff(func(c *Config) []*bool { return []*bool{&c.Global.AccessLog.Off} }),
	}
	disableStreamAccessLog = Key{
		Name: "disable-stream-access-log", Scope: process,
		Doc:    "Notes no connections of TCP and UDP ports.",
		Values: booleans, Example: "true", Default: "false",
		Parse: logOff(func(c *Config) []*bool { return []*bool{&c.Global.StreamLog.Off} }),
	}
	accessLogPath = Key{
		Name: "access-log-path", Scope: process,
		Doc: "The file that requests, and connections of TCP and UDP ports, are noted in. `" + ir.LogStdout +
			"` and `/dev/stdout` are the " +
			"standard output. A file that was renamed is made anew.",
		Values: "an absolute path", Example: "/var/log/access.log", Default: ir.LogStdout,
		Parse: nginx.Into(func(c *Config) *string { return &c.Global.AccessLog.Path }, readLogPath),
	}
	httpAccessLogPath = Key{
		Name: "http-access-log-path", Scope: process,
		Doc:    "access-log-path for HTTP requests alone.",
		Values: "an absolute path", Example: "/var/log/http.log", Default: "that of access-log-path",
		Parse: nginx.Into(func(c *Config) *string { return &c.HTTPLogPath }, readLogPath),
	}
	streamAccessLogPath = Key{
		Name: "stream-access-log-path", Scope: process,
		Doc:    "access-log-path for connections of TCP and UDP ports alone.",
		Values: "an absolute path", Example: "/var/log/stream.log", Default: "that of access-log-path",
		Parse: nginx.Into(func(c *Config) *string { return &c.Global.StreamLog.Path }, readLogPath),
	}
	logFormatStream = Key{
		Name: "log-format-stream", Scope: process,
		Doc: "What is noted of a connection of a TCP port, and of a client of a UDP port, when it ends: text with " +
			"variables of nginx's stream module. There are `$" + strings.Join(nginx.StreamVariables, "`, `$") +
			"`; the value of another one is `-`. $status is 200 for a " +
			"connection that an endpoint has taken, 400 for one without the PROXY protocol header or the TLS that " +
			"its port demands, 403 for one of a client that may not connect, 500 for a fault of the controller, 502 " +
			"for one that no endpoint has taken, or answered where answers were to come, and 503 for a TCP " +
			"connection beyond a limit. With a PROXY protocol header, $remote_addr is the client in it. Connections " +
			"that are passed through (ssl-passthrough) are not noted.",
		Values: "text with variables", Example: "$remote_addr $status $upstream_addr", Default: "that of ingress-nginx",
		Parse: nginx.Into(func(c *Config) *string { return &c.Global.StreamLog.Format }, readStreamFormat),
	}
	logFormatUpstream = Key{
		Name: "log-format-upstream", Scope: process,
		Doc: "What is noted of a request: text with [variables of nginx](https://nginx.org/en/docs/varindex.html) " +
			"and of ingress-nginx. The value of one that there is not here is `-`. Sizes are those of bodies; " +
			"$request_length counts the head as HTTP/1.1 has it, and the body if its length was said.",
		Values: "text with variables", Example: "$remote_addr $status $request_uri", Default: "that of ingress-nginx",
		Parse: nginx.Into(func(c *Config) *string { return &c.Global.AccessLog.Format }, readFormat),
	}
	logFormatEscapeJSON = Key{
		Name: "log-format-escape-json", Scope: process,
		Doc: "Values are written as they stand in a string of JSON. The quotes around them are part of " +
			"log-format-upstream.",
		Values: booleans, Example: "true", Default: "false",
		Parse: escape(ir.EscapeJSON),
	}
	logFormatEscapeNone = Key{
		Name: "log-format-escape-none", Scope: process,
		Doc: "Values are written as they are, but for line breaks and other control characters, which no value " +
			"may have here.",
		Values: booleans, Example: "true", Default: "false",
		Parse: escape(ir.EscapeNone),
	}
	skipAccessLogURLs = Key{
		Name: "skip-access-log-urls", Scope: process,
		Doc: "Requests that are not noted: their path and query as the client has sent them, or a regular " +
			"expression with `~` in front of it.",
		Values: "paths with commas between them", Example: "/healthz,/ready", Default: "none",
		Parse: nginx.Into(func(c *Config) *[]string { return &c.Global.AccessLog.Skip }, readSkipped), Lines: true,
	}
	enableAccessLogForDefaultBackend = Key{
		Name: "enable-access-log-for-default-backend", Scope: process,
		Doc:    "Notes requests for hosts and paths that no Ingress has, too.",
		Values: booleans, Example: "true", Default: "false",
		Parse: nginx.Into(func(c *Config) *bool { return &c.Global.AccessLog.Unknown }, nginx.Bool),
	}
	enableSyslog = Key{
		Name: "enable-syslog", Scope: process,
		Doc: "Sends the lines of requests to a syslog server by UDP, in place of a file, with the facility local7, " +
			"the severity info and the tag nginx; those of TCP and UDP ports stay in their file. The log of the " +
			"controller itself goes where Caddy's option `log` says.",
		Values: booleans, Example: "true", Default: "false",
		Parse: nginx.Into(func(c *Config) *bool { return &c.Syslog.On }, nginx.Bool),
		Check: func(c *Config) string {
			return option.Unless(!c.Syslog.On || c.Syslog.Host != "",
				"this has no effect, because syslog-host names no server")
		},
	}
	syslogHost = Key{
		Name: "syslog-host", Scope: process, Doc: "The syslog server of enable-syslog.",
		Values: "a host or an IP address", Example: "192.0.2.1", Default: "none",
		Parse: nginx.Into(func(c *Config) *string { return &c.Syslog.Host }, readHostFor("syslog-port")),
	}
	syslogPort = Key{
		Name: "syslog-port", Scope: process, Doc: "The port of that server.",
		Values: "a number from 1 to 65535", Example: "514", Default: "514",
		Parse: nginx.Into(func(c *Config) *int { return &c.Syslog.Port }, nginx.Number(1, mostPort)),
	}
)

// Syslog is the syslog server that receives the access log if On is true. A zero Port is port 514.
type Syslog struct {
	On   bool
	Host string
	Port int
}

func escape(as ir.LogEscape) func(*Config, string) error {
	return func(c *Config, value string) error {
		on, err := nginx.Bool(value)
		if err == nil && on {
			c.Global.AccessLog.Escape = as
		}
		return err
	}
}

// logOff returns a parser that turns logs off if the value is true. If it is false, the logs stay as other keys set
// them.
func logOff(of func(*Config) []*bool) func(*Config, string) error {
	return func(c *Config, value string) error {
		off, err := nginx.Bool(value)
		if err == nil && off {
			for _, log := range of(c) {
				*log = true
			}
		}
		return err
	}
}

// finishAccessLog sets the destinations of the logs. The path for HTTP takes precedence over the common path, and a
// syslog server over both.
func (c *Config) finishAccessLog() {
	c.Global.StreamLog.Path = cmp.Or(c.Global.StreamLog.Path, c.Global.AccessLog.Path)
	if c.HTTPLogPath != "" {
		c.Global.AccessLog.Path, c.HTTPLogPath = c.HTTPLogPath, ""
	}
	if c.Syslog.On && c.Syslog.Host != "" {
		c.Global.AccessLog.Path = ir.Syslog + net.JoinHostPort(c.Syslog.Host, strconv.Itoa(cmp.Or(c.Syslog.Port, 514)))
	}
}

func readLogPath(value string) (string, error) {
	switch {
	case strings.HasPrefix(value, "syslog:"):
		return "", nginx.Unsupported("it is the path of a file: enable-syslog and syslog-host name a syslog server")
	case !strings.HasPrefix(value, "/") || strings.ContainsFunc(value, nginx.IsControl):
		return "", fmt.Errorf("%s is not an absolute path", nginx.Quote(value))
	}
	return value, nil
}

func readFormat(value string) (string, error) {
	return formatWithout(value, func(s nginx.Split) []string { return s.Unknown(nginx.LogVariables...) })
}

func readStreamFormat(value string) (string, error) {
	return formatWithout(value, func(s nginx.Split) []string { return s.Others(nginx.StreamVariables) })
}

// formatWithout checks a log format. The error names the variables that do not exist; the format is used nevertheless.
func formatWithout(value string, unknown func(nginx.Split) []string) (string, error) {
	switch {
	case len(value) > mostFormatBytes:
		return "", fmt.Errorf("it has %d bytes, and %d are the most", len(value), mostFormatBytes)
	case strings.ContainsFunc(value, nginx.IsControl):
		return "", errors.New("it has a line break or another control character in it")
	}
	if names := unknown(nginx.SplitTemplate(value)); len(names) > 0 {
		return value, nginx.Partial("there is no variable $" + strings.Join(names, ", $") + " here: the value is -")
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
