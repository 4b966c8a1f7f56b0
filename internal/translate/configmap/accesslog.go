package configmap

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/k8singress/k8singress/internal/http/accesslog"
	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
	"github.com/k8singress/k8singress/internal/model/option"
	"github.com/k8singress/k8singress/internal/model/pattern"
)

// maxFormatBytes is the maximum length of a log format, in bytes.
const maxFormatBytes = 8 << 10

// The ConfigMap keys that configure the access log.
var (
	disableAccessLog = Key{
		Name: "disable-access-log", Scope: process,
		Doc:    "Disables the access log for HTTP requests, and for connections of TCP and UDP ports.",
		Values: booleans, Example: "true", Default: "false",
		Parse: logOff(func(c *Config) []*bool { return []*bool{&c.Global.AccessLog.Off, &c.Global.StreamLog.Off} }),
	}
	disableHTTPAccessLog = Key{
		Name: "disable-http-access-log", Scope: process,
		Doc:    "Disables the access log for HTTP requests.",
		Values: booleans, Example: "true", Default: "false",
		Parse: logOff(func(c *Config) []*bool { return []*bool{&c.Global.AccessLog.Off} }),
	}
	disableStreamAccessLog = Key{
		Name: "disable-stream-access-log", Scope: process,
		Doc:    "Disables the access log for connections of TCP and UDP ports.",
		Values: booleans, Example: "true", Default: "false",
		Parse: logOff(func(c *Config) []*bool { return []*bool{&c.Global.StreamLog.Off} }),
	}
	accessLogPath = Key{
		Name: "access-log-path", Scope: process,
		Doc: "The file of the access log for HTTP requests, and for connections of TCP and UDP ports. `" +
			ir.LogStdout +
			"` and `/dev/stdout` stand for the standard output. If another process renames the file, a new file is " +
			"created.",
		Values: "an absolute path", Example: "/var/log/access.log", Default: ir.LogStdout,
		Parse: nginx.Into(func(c *Config) *string { return &c.Global.AccessLog.Path }, readLogPath),
	}
	httpAccessLogPath = Key{
		Name: "http-access-log-path", Scope: process,
		Doc:    "The file of the access log for HTTP requests.",
		Values: "an absolute path", Example: "/var/log/http.log", Default: "the value of access-log-path",
		Parse: nginx.Into(func(c *Config) *string { return &c.HTTPLogPath }, readLogPath),
	}
	streamAccessLogPath = Key{
		Name: "stream-access-log-path", Scope: process,
		Doc:    "The file of the access log for connections of TCP and UDP ports.",
		Values: "an absolute path", Example: "/var/log/stream.log", Default: "the value of access-log-path",
		Parse: nginx.Into(func(c *Config) *string { return &c.Global.StreamLog.Path }, readLogPath),
	}
	logFormatStream = Key{
		Name: "log-format-stream", Scope: process,
		Doc: "The format of the log line for a connection of a TCP port, or a client of a UDP port: text with " +
			"variables of nginx's stream module. The line is written at the end of the connection. TLS connections " +
			"that ssl-passthrough forwards are not logged.\n\n" +
			"The variables `$" + strings.Join(accesslog.StreamVariables(), "`, `$") + "` are supported; other " +
			"variables have the value `-`. With a PROXY protocol header, $remote_addr is the address of the client " +
			"in this header.\n\n" +
			"The values of $status are:\n\n" +
			"- 200: an endpoint accepted the connection\n" +
			"- 400: the port requires a PROXY protocol header or TLS, and the client did not send it\n" +
			"- 403: the client is not allowed to connect\n" +
			"- 500: an internal error occurred\n" +
			"- 502: no endpoint accepted the connection, or expected responses did not arrive\n" +
			"- 503: a TCP connection exceeded a limit",
		Values: "text with variables", Example: "$remote_addr $status $upstream_addr",
		Default: "the format of ingress-nginx",
		Parse:   nginx.Into(func(c *Config) *string { return &c.Global.StreamLog.Format }, readStreamFormat),
	}
	logFormatUpstream = Key{
		Name: "log-format-upstream", Scope: process,
		Doc: "The format of the log line for a request: text with [variables of " +
			"nginx](https://nginx.org/en/docs/varindex.html) and of ingress-nginx, and variables that " +
			"[http-snippet](#http-snippet) defines. Unsupported variables have the value `-`.\n\n" +
			"Variables for sizes of requests and responses, such as $bytes_sent, are the size of the body without " +
			"headers. $request_length is the exception: it is the size of the request line and headers in HTTP/1.1 " +
			"format, plus the size of the body if the client declared it.",
		Values: "text with variables", Example: "$remote_addr $status $request_uri",
		Default: "the format of ingress-nginx",
		Parse:   parseFormat,
	}
	logFormatEscapeJSON = Key{
		Name: "log-format-escape-json", Scope: process,
		Doc: "Escapes the values of variables for use in JSON strings. The quotes around the values must be part " +
			"of log-format-upstream.",
		Values: booleans, Example: "true", Default: "false",
		Parse: escape(ir.EscapeJSON),
	}
	logFormatEscapeNone = Key{
		Name: "log-format-escape-none", Scope: process,
		Doc: "Writes the values of variables without escaping. Only line breaks and other control characters are " +
			"always escaped.",
		Values: booleans, Example: "true", Default: "false",
		Parse: escape(ir.EscapeNone),
	}
	skipAccessLogURLs = Key{
		Name: "skip-access-log-urls", Scope: process,
		Doc: "Requests that are not logged. Each entry is a path and query as the client sends them, or `~` followed " +
			"by a regular expression.",
		Values: "comma-separated paths", Example: "/healthz,/ready", Default: "none",
		Parse: nginx.Into(func(c *Config) *[]string { return &c.Global.AccessLog.Skip }, readSkipped), Lines: true,
	}
	enableAccessLogForDefaultBackend = Key{
		Name: "enable-access-log-for-default-backend", Scope: process,
		Doc:    "Also logs requests for hosts and paths that are not in any Ingress.",
		Values: booleans, Example: "true", Default: "false",
		Parse: nginx.Into(func(c *Config) *bool { return &c.Global.AccessLog.Unknown }, nginx.Bool),
	}
	enableSyslog = Key{
		Name: "enable-syslog", Scope: process,
		Doc: "Sends the access log for HTTP requests to a syslog server by UDP, instead of writing it to a file. The " +
			"facility is local7, the severity is info, and the tag is nginx. The access log for connections of TCP " +
			"and UDP ports is still written to its file. The controller's own log does not depend on this key: " +
			"Caddy's global option `log` sets its destination.",
		Values: booleans, Example: "true", Default: "false",
		Parse: nginx.Into(func(c *Config) *bool { return &c.Syslog.On }, nginx.Bool),
		Check: func(c *Config) string {
			return option.Unless(!c.Syslog.On || c.Syslog.Host != "",
				"the setting has no effect, because there is no syslog server: set syslog-host")
		},
	}
	syslogHost = Key{
		Name: "syslog-host", Scope: process, Doc: "The syslog server to which enable-syslog sends log lines.",
		Values: "a host or an IP address", Example: "192.0.2.1", Default: "none",
		Parse: nginx.Into(func(c *Config) *string { return &c.Syslog.Host }, readHostFor("syslog-port")),
	}
	syslogPort = Key{
		Name: "syslog-port", Scope: process, Doc: "The port of the syslog server.",
		Values: "a number from 1 to 65535", Example: "514", Default: "514",
		Parse: nginx.Into(func(c *Config) *int { return &c.Syslog.Port }, nginx.Number(1, maxPort)),
	}
)

// Syslog configures the syslog server that receives the access log if On is true. If Port is zero, port 514 is used.
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

// logOff returns a parser for a key that disables logs. The value true disables them; false leaves the logs as other
// keys configure them.
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

// finishAccessLog sets the destinations of the access logs. For HTTP requests, http-access-log-path takes precedence
// over access-log-path, and a syslog server takes precedence over both.
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
		return "",
			nginx.Unsupported("the value is not the path of a file: to send the log to a syslog server, set " +
				"enable-syslog and syslog-host")
	case !strings.HasPrefix(value, "/") || strings.ContainsFunc(value, nginx.IsControl):
		return "", fmt.Errorf("%s is not an absolute path", nginx.Quote(value))
	}
	return value, nil
}

// parseFormat parses the format of the log of requests, which may contain the variables of all snippets. The snippets
// of the ConfigMap are read before. If snippets of Ingresses may set a variable, there is only a warning.
func parseFormat(c *Config, value string) error {
	var ofIngresses []string
	unknown := func(format string) []string {
		names := c.Defaults.UnknownInSnippets(accesslog.UnknownVariables(format))
		if !c.Defaults.AllowsSnippets() {
			return names
		}
		ofIngresses = slices.DeleteFunc(slices.Clone(names), cannotBeSet)
		return slices.DeleteFunc(names, func(name string) bool { return !cannotBeSet(name) })
	}
	read := func(value string) (string, error) {
		value, err := checkFormat(value, unknown)
		if err == nil && len(ofIngresses) > 0 {
			err = nginx.Remark("these variables have the value -, unless the snippet of an Ingress sets them: $" +
				strings.Join(ofIngresses, ", $"))
		}
		return value, err
	}
	return nginx.Into(func(c *Config) *string { return &c.Global.AccessLog.Format }, read)(c, value)
}

// cannotBeSet reports whether a variable is a variable of nginx.
func cannotBeSet(name string) bool { return exchange.CheckSettable(name) != nil }

func readStreamFormat(value string) (string, error) {
	return checkFormat(value, accesslog.UnknownStreamVariables)
}

// checkFormat checks a log format. If the format contains unknown variables, it is used nevertheless, and the error
// lists these variables.
func checkFormat(value string, unknown func(format string) []string) (string, error) {
	switch {
	case len(value) > maxFormatBytes:
		return "", fmt.Errorf("the value has %d bytes, and the maximum is %d", len(value), maxFormatBytes)
	case strings.ContainsFunc(value, nginx.IsControl):
		return "", errors.New("the value contains a line break or another control character")
	}
	if names := unknown(value); len(names) > 0 {
		return value, nginx.Partial("these variables are not supported and have the value -: $" +
			strings.Join(names, ", $"))
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
