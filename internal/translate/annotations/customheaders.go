package annotations

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
)

// The annotation custom-headers, and the ConfigMap key that lists the allowed headers. GlobalAllowedResponseHeaders is
// not in Table, because it is not an annotation.
var (
	customHeaders = Annotation{
		Name: "custom-headers",
		Doc: "The ConfigMap whose data are added to responses as headers. These headers replace headers of the " +
			"endpoint with the same names. Values are plain text. Redirects and errors of the controller itself do " +
			"not get the headers.\n\n" +
			"Each name must be in the key " +
			"[global-allowed-response-headers](configmap.md#global-allowed-response-headers) of the controller's " +
			"ConfigMap. All requests get 503 while one of these is true: a name is not in that key, a name or value " +
			"is invalid, the ConfigMap in custom-headers does not exist, or it is in another namespace.",
		Values: "name or namespace/name", Example: "headers", Default: "none", Scope: ScopeLocation, Risk: RiskMedium,
		Parse:   nginx.Into(func(s *Settings) *string { return &s.CustomHeaders.ConfigMap }, readObjectName),
		OnError: (*Settings).close, Meanwhile: ingressClosed,
	}
	GlobalAllowedResponseHeaders = Annotation{
		Name: "global-allowed-response-headers",
		Doc: "The names of the headers that Ingresses may set with the annotation " +
			"[custom-headers](annotations.md#custom-headers); case is ignored. If an Ingress sets a header that is " +
			"not in this list, all requests for the Ingress get 503.",
		Values: "comma-separated names", Example: "X-Frame-Options,Content-Security-Policy", Default: "none",
		Parse: nginx.Into(func(s *Settings) *[]string { return &s.CustomHeaders.Allowed },
			nginx.ListOf(checkHeaderName)), Lines: true,
	}
)

// CustomHeaders holds the settings for additional response headers.
type CustomHeaders struct {
	// ConfigMap is the name of the ConfigMap with the headers, with or without its namespace.
	ConfigMap string
	// Allowed lists the header names that an Ingress may set. It comes from the ConfigMap of the controller; no
	// annotation changes it.
	Allowed []string
	// Data maps the header names to their values. It is set by the code that reads the ConfigMap, after Check has
	// accepted all headers.
	Data map[string]string
}

// Check returns an error if an Ingress must not add a header with this name and value to responses.
func (h *CustomHeaders) Check(name, value string) error {
	if err := checkHeaderName(name); err != nil {
		return err
	}
	if !slices.ContainsFunc(h.Allowed, func(allowed string) bool { return strings.EqualFold(allowed, name) }) {
		return fmt.Errorf(
			"the header %s is not allowed: add it to %s in the ConfigMap of the controller, or remove the key",
			name, GlobalAllowedResponseHeaders.Name)
	}
	if strings.TrimSpace(value) == "" {
		return errors.New("the value is empty")
	}
	for _, r := range value {
		if r < ' ' || r > '~' {
			return fmt.Errorf("the value contains the character %U: write one line of ASCII text", r)
		}
	}
	return nil
}

// customHeaders returns the filter that sets the custom response headers, or nil if there are no headers. Spaces at the
// start and the end of header values are removed, because HTTP/2 forbids them.
func (s *Settings) customHeaders(string) []ir.Filter {
	if len(s.CustomHeaders.Data) == 0 {
		return nil
	}
	var set []ir.Header
	for _, name := range slices.Sorted(maps.Keys(s.CustomHeaders.Data)) {
		set = append(set, ir.Header{Name: name, Value: strings.TrimSpace(s.CustomHeaders.Data[name])})
	}
	return []ir.Filter{ir.ResponseHeaders{HeaderChanges: ir.HeaderChanges{Set: set}}}
}

const (
	headerChars = "-_"
	// maxHeaderBytes is the maximum length of a header name, in bytes.
	maxHeaderBytes = 128
)

func checkHeaderName(name string) error {
	if _, err := nginx.Chars(headerChars, maxHeaderBytes)(name); err != nil {
		return err
	}
	if message.KindOf(name).Hop() {
		return fmt.Errorf("the header %s describes a connection or the length of a body, and cannot be set", name)
	}
	return nil
}
