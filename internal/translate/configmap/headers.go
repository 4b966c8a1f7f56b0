package configmap

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
	"github.com/k8singress/k8singress/internal/translate/snippets"
)

const (
	// maxHeaderBytes is the maximum length of a header name, in bytes. maxHeadersBytes is the maximum total size of the
	// headers in a ConfigMap, in bytes.
	maxHeaderBytes, maxHeadersBytes = 128, 16 << 10
	headerMapValues                 = "namespace/name"
	headerMapDoc                    = "Values may contain nginx variables. While the ConfigMap does not exist, no " +
		"headers are added. Invalid headers are ignored."
)

// The ConfigMap keys that add or remove headers of all requests and responses.
var (
	addHeaders = Key{
		Name: "add-headers", Scope: process,
		Doc: "The ConfigMap whose data are added as headers to all responses to clients, including errors. These " +
			"headers replace headers with the same names. Headers whose values contain a variable are not added to " +
			"responses for hosts and paths that are not in any Ingress. " + headerMapDoc,
		Values: headerMapValues, Example: "ingress-nginx/custom-headers", Default: "none",
		Parse: nginx.Into(func(c *Config) *ir.Name { return &c.AddHeaders }, readName),
	}
	proxySetHeaders = Key{
		Name: "proxy-set-headers", Scope: process,
		Doc: "The ConfigMap whose data are sent as headers to all endpoints. These headers replace headers of the " +
			"client and of the controller with the same names; in ingress-nginx, endpoints get both. " + headerMapDoc,
		Values: headerMapValues, Example: "ingress-nginx/custom-headers", Default: "none",
		Parse: nginx.Into(func(c *Config) *ir.Name { return &c.SetHeaders }, readName),
	}
	hideHeaders = Key{
		Name: "hide-headers", Scope: process,
		Doc:    "The response headers of endpoints that are removed before a response is sent to the client.",
		Values: "comma-separated names", Example: "X-Powered-By,X-Generator", Default: "none",
		Parse: nginx.Into(func(c *Config) *[]string { return &c.Global.Headers.Hidden }, nginx.ListOf(checkHeaderName)),
		Lines: true,
	}
	proxyAddOriginalURIHeader = Key{
		Name: "proxy-add-original-uri-header", Scope: process,
		Doc:    "Sends the original path and query of the client's request to endpoints in the header X-Original-URI.",
		Values: booleans, Example: "true", Default: "false",
		Parse: nginx.Into(func(c *Config) *bool { return &c.Global.Headers.OriginalURI }, nginx.Bool),
	}
	forwardedHostHeader = Key{
		Name: "forwarded-host-header", Scope: process,
		Doc: "The request header that contains the host that the client requested. The header is used if " +
			"use-forwarded-headers is `true`.",
		Values: "the name of a header", Example: "X-Original-Host", Default: "X-Forwarded-Host",
		Parse: nginx.Into(func(c *Config) *string { return &c.Global.Clients.HostHeader }, nginx.Token),
	}
)

// The ConfigMap keys for request headers with underscores or invalid characters, which endpoints may confuse with other
// headers.
var (
	enableUnderscoresInHeaders = Key{
		Name: "enable-underscores-in-headers", Scope: process,
		Doc:    "Forwards client headers with underscores in their names to endpoints. " + mistakableDoc,
		Values: booleans, Example: "true", Default: "false",
		Parse: nginx.Into(func(c *Config) *bool { return &c.Global.Connections.Underscores }, nginx.Bool),
	}
	ignoreInvalidHeaders = Key{
		Name: "ignore-invalid-headers", Scope: process,
		Doc: "With `false`, client headers are forwarded to endpoints even if their names contain unusual characters " +
			"that HTTP allows, including underscores. " + mistakableDoc,
		Values: booleans, Example: "false", Default: "true",
		Parse: nginx.Into(func(c *Config) *bool { return &c.Global.Connections.InvalidNames },
			func(value string) (bool, error) {
				ignores, err := nginx.Bool(value)
				return err == nil && !ignores, err
			}),
	}
)

const mistakableDoc = "Many endpoints treat underscores in a name like hyphens. Therefore, a header such as " +
	"X_Forwarded_For is always removed if its name has the same letters and digits as a header that the controller " +
	"reads or sets. A change also applies to open connections."

// readName parses the name of an object in the format namespace/name.
func readName(value string) (ir.Name, error) {
	namespace, name, _ := strings.Cut(value, "/")
	if len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return ir.Name{}, fmt.Errorf("%s is not the name of an object: write namespace/name", nginx.Quote(value))
	}
	return ir.Name{Namespace: namespace, Name: name}, nil
}

// checkHeaderName returns an error for an invalid header name, and for headers that describe the connection or the
// length of the body.
func checkHeaderName(name string) error {
	if _, err := nginx.Chars("-_", maxHeaderBytes)(name); err != nil {
		return err
	}
	if message.KindOf(name).Hop() {
		return fmt.Errorf("the header %s describes a connection or the length of a body, and cannot be changed", name)
	}
	return nil
}

// ReadHeaders parses the data of a ConfigMap that is referenced by add-headers or proxy-set-headers. It returns the
// valid headers, sorted by name, and the error for each invalid key. Values may contain the variables of variables.
func ReadHeaders(data map[string]string, variables *snippets.HTTP) (headers []ir.Header, bad map[string]error) {
	bad = map[string]error{}
	size := 0
	for _, name := range slices.Sorted(maps.Keys(data)) {
		value := strings.TrimSpace(data[name])
		size += len(name) + len(value)
		err := checkHeader(name, value, size)
		if err == nil {
			err = variables.CheckVariables(value)
		}
		if err != nil {
			bad[name] = err
			continue
		}
		headers = append(headers, ir.Header{Name: name, Value: value})
	}
	return headers, bad
}

func checkHeader(name, value string, size int) error {
	if err := checkHeaderName(name); err != nil {
		return err
	}
	if message.KindOf(name) == message.CDNLoop {
		return fmt.Errorf("the controller detects loops by the header %s, which cannot be changed", name)
	}
	if strings.ContainsFunc(value, nginx.IsControl) {
		return errors.New("the value contains a line break or another control character")
	}
	if size > maxHeadersBytes {
		return fmt.Errorf(
			"the headers of the ConfigMap are larger than %d bytes, which is the maximum: this header is ignored",
			maxHeadersBytes)
	}
	_, err := exchange.ParseTemplate(value)
	return err
}
