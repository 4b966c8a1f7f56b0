package annotations

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/k8singress/k8singress/internal/model/nginx"
	"github.com/k8singress/k8singress/internal/model/option"
)

// The annotations for error pages.
var (
	customHTTPErrors = Annotation{
		Name: "custom-http-errors",
		Doc: "The errors in whose place clients get what the Service of default-backend answers, or else the " +
			"[default backend](caddyfile.md#default_backend) of the controller: errors of endpoints and of the " +
			"controller itself. The status is that of this answer, but for errors of what keeps clients out, which " +
			"keep theirs. [Error pages](error-pages.md) says what the Service gets.",
		Values: "numbers from 400 to 599 with commas between them", Example: "404,503", Default: "none",
		Scope: ScopeLocation, Risk: RiskLow,
		Parse: nginx.Into(func(s *Settings) *[]int { return &s.ErrorPages.Statuses }, readStatuses),
		Check: func(s *Settings) string {
			return option.Unless(s.ErrorPages.Service != "" || s.ErrorPages.HasDefault,
				"this has no effect without a Service that answers in place "+
					"of the errors: name one of the namespace of the Ingress in default-backend, or set the option "+
					"default_backend of the controller")
		},
	}
	defaultBackend = Annotation{
		Name: "default-backend",
		Doc: "The Service that answers in place of the errors of custom-http-errors, and while the Service of a " +
			"path has no endpoints. Its first port is asked by HTTP. It is one of the namespace of the Ingress.",
		Values: "the name of a Service", Example: "error-pages",
		Default: "the default backend of the controller, for errors only",
		Scope:   ScopeLocation, Risk: RiskLow,
		Parse: nginx.Into(func(s *Settings) *string { return &s.ErrorPages.Service }, readServiceName),
	}
	disableProxyInterceptErrors = Annotation{
		Name: "disable-proxy-intercept-errors",
		Doc: "Leaves the answers of endpoints as they are, whatever custom-http-errors says: only errors of the " +
			"controller itself are replaced.",
		Values: booleans, Example: "true", Default: "false", Scope: ScopeLocation, Risk: RiskLow,
		Parse: nginx.Into(func(s *Settings) *bool { return &s.ErrorPages.OwnOnly }, nginx.Bool),
		Check: func(s *Settings) string {
			return option.Unless(len(s.ErrorPages.Statuses) > 0, "this has no effect without custom-http-errors")
		},
	}
)

// ErrorPages holds the settings for responses that replace errors.
type ErrorPages struct {
	// Statuses are the status codes to replace, in ascending order.
	Statuses []int
	OwnOnly  bool
	// Service is the name of the Service that provides the error pages. It is in the namespace of the Ingress.
	Service string
	// HasDefault means that the controller has a default backend. Only the defaults set it; no annotation changes it.
	HasDefault bool
}

// The range of HTTP error status codes.
const leastError, mostError = 400, 599

func readStatuses(value string) ([]int, error) {
	var all []int
	for text := range strings.SplitSeq(strings.TrimSuffix(value, ","), ",") {
		status, err := nginx.Number(leastError, mostError)(strings.TrimSpace(text))
		if err != nil {
			return nil,
				fmt.Errorf(
					"%s is not a number from %d to %d: write the statuses of errors with commas between them, such "+
						"as 404,503",
					nginx.Quote(strings.TrimSpace(text)), leastError, mostError)
		}
		all = append(all, status)
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

func readServiceName(value string) (string, error) {
	if strings.Contains(value, "/") {
		return "",
			fmt.Errorf(
				"%s has a slash in it: write the name of a Service in the namespace of the Ingress, without that "+
					"namespace",
				nginx.Quote(value))
	}
	if len(validation.IsDNS1123Label(value)) > 0 {
		return "", fmt.Errorf("%s is not the name of a Service", nginx.Quote(value))
	}
	return value, nil
}
