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
		Doc: "The status codes of the error responses to replace with an error page. Errors of endpoints and of the " +
			"controller are replaced. The client gets the status of the error page, but errors of access control " +
			"keep their own status.\n\n" +
			"The Service in the annotation default-backend provides the error pages. Without this annotation, the " +
			"controller's [default backend](caddyfile.md#default_backend) provides them. [Error " +
			"pages](error-pages.md) describes the request to the Service.",
		Values: "comma-separated numbers from 400 to 599", Example: "404,503", Default: "none",
		Scope: ScopeLocation, Risk: RiskLow,
		Parse: nginx.Into(func(s *Settings) *[]int { return &s.ErrorPages.Statuses }, readStatuses),
		Check: func(s *Settings) string {
			return option.Unless(s.ErrorPages.Service != "" || s.ErrorPages.HasDefault,
				"the setting has no effect, because no Service provides error pages: name a Service in the namespace "+
					"of the Ingress in default-backend, or set the option default_backend of the controller")
		},
	}
	defaultBackend = Annotation{
		Name: "default-backend",
		Doc: "The Service, in the namespace of the Ingress, that provides the error pages for custom-http-errors. It " +
			"also serves the requests for a path while the Service of this path has no endpoints. The controller " +
			"sends HTTP requests to the first port of the Service.",
		Values: "the name of a Service", Example: "error-pages",
		Default: "the default backend of the controller, only for error pages",
		Scope:   ScopeLocation, Risk: RiskLow,
		Parse: nginx.Into(func(s *Settings) *string { return &s.ErrorPages.Service }, readServiceName),
	}
	disableProxyInterceptErrors = Annotation{
		Name: "disable-proxy-intercept-errors",
		Doc: "Keeps error responses of endpoints unchanged, even if custom-http-errors lists their status codes. " +
			"Only errors of the controller itself are replaced.",
		Values: booleans, Example: "true", Default: "false", Scope: ScopeLocation, Risk: RiskLow,
		Parse: nginx.Into(func(s *Settings) *bool { return &s.ErrorPages.OwnOnly }, nginx.Bool),
		Check: func(s *Settings) string {
			return option.Unless(len(s.ErrorPages.Statuses) > 0, "the setting has no effect without custom-http-errors")
		},
	}
)

// ErrorPages configures which error responses are replaced, and by which Service.
type ErrorPages struct {
	// Statuses are the status codes to replace, in ascending order.
	Statuses []int
	OwnOnly  bool
	// Service is the name of the Service that provides the error pages. It is in the namespace of the Ingress.
	Service string
	// HasDefault is true if the controller has a default backend. Its value comes from the controller's options; no
	// annotation changes it.
	HasDefault bool
}

// The range of HTTP error status codes.
const minError, maxError = 400, 599

func readStatuses(value string) ([]int, error) {
	var all []int
	for text := range strings.SplitSeq(strings.TrimSuffix(value, ","), ",") {
		status, err := nginx.Number(minError, maxError)(strings.TrimSpace(text))
		if err != nil {
			return nil,
				fmt.Errorf(
					"%s is not a number from %d to %d: write comma-separated status codes, such as 404,503",
					nginx.Quote(strings.TrimSpace(text)), minError, maxError)
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
				"%s contains a slash: write the name of a Service in the namespace of the Ingress, without a namespace",
				nginx.Quote(value))
	}
	if len(validation.IsDNS1123Label(value)) > 0 {
		return "", fmt.Errorf("%s is not the name of a Service", nginx.Quote(value))
	}
	return value, nil
}
