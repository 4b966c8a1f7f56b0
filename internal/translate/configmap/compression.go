package configmap

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/k8singress/k8singress/internal/model/nginx"
	"github.com/k8singress/k8singress/internal/model/pattern"
)

const (
	// maxMinLength is the maximum value of gzip-min-length and brotli-min-length, in bytes.
	maxMinLength = 1 << 30
	// maxTypeBytes is the maximum length of each part of a media type, in bytes.
	maxTypeBytes = 128
	codingTypes  = "space-separated media types, or `*` for all"
	typesDefault = "the types of ingress-nginx"
	codingDoc    = "This applies to responses with the status 200, 403 or 404, for clients that accept the " +
		"encoding and use HTTP/1.1 or newer. Responses that are already compressed, that contain `no-transform`, or " +
		"that are event streams or gRPC are not compressed."
)

// The ConfigMap keys that configure the compression of responses.
var (
	useGzip = Key{
		Name: "use-gzip", Scope: process, Doc: "Compresses responses with gzip. " + codingDoc,
		Values: booleans, Example: "true", Default: "false",
		Parse: nginx.Into(func(c *Config) *bool { return &c.Global.Compression.Gzip.On }, nginx.Bool),
	}
	gzipLevel = Key{
		Name: "gzip-level", Scope: process,
		Doc:    "The compression level of gzip. A higher level compresses better and takes more CPU time.",
		Values: "a number from 1 to 9", Example: "5", Default: "1",
		Parse: nginx.Into(func(c *Config) *int { return &c.Global.Compression.Gzip.Level }, nginx.Number(1, 9)),
	}
	gzipMinLength = Key{
		Name: "gzip-min-length", Scope: process,
		Doc: "The minimum length of responses that gzip compresses, in bytes. Responses of unknown length are " +
			"always compressed.",
		Values: fmt.Sprintf("a number from 0 to %d", maxMinLength), Example: "1000", Default: "256",
		Parse: nginx.Into(func(c *Config) *int { return &c.Global.Compression.Gzip.MinSize }, orNone(maxMinLength)),
	}
	gzipTypes = Key{
		Name: "gzip-types", Scope: process,
		Doc:    "The media types of responses that gzip compresses, in addition to text/html.",
		Values: codingTypes, Example: "text/css application/json", Default: typesDefault,
		Parse: nginx.Into(func(c *Config) *[]string { return &c.Global.Compression.Gzip.Types }, readTypes),
		Lines: true,
	}
	gzipDisable = Key{
		Name: "gzip-disable", Scope: process,
		Doc: "A regular expression (RE2) that ignores case. Responses to clients with a matching User-Agent header " +
			"are not compressed with gzip. As in nginx, `msie6` matches Internet Explorer 4, 5 and those versions of " +
			"6 whose User-Agent does not contain SV1.",
		Values: "a regular expression, or `msie6`", Example: "old browser", Default: "none",
		Parse: nginx.Into(func(c *Config) *string { return &c.Global.Compression.GzipDisable }, readAgents),
	}
	enableBrotli = Key{
		Name: "enable-brotli", Scope: process,
		Doc:    "Compresses responses with Brotli, which is preferred over gzip. " + codingDoc,
		Values: booleans, Example: "true", Default: "false",
		Parse: nginx.Into(func(c *Config) *bool { return &c.Global.Compression.Brotli.On }, nginx.Bool),
	}
	brotliLevel = Key{
		Name: "brotli-level", Scope: process,
		Doc: "The compression level of Brotli. A higher level compresses better and takes more CPU time, much " +
			"more from level 10 on.",
		Values: "a number from 0 to 11", Example: "5", Default: "4",
		Parse: nginx.Into(func(c *Config) *int { return &c.Global.Compression.Brotli.Level }, orNone(11)),
	}
	brotliMinLength = Key{
		Name: "brotli-min-length", Scope: process,
		Doc: "The minimum length of responses that Brotli compresses, in bytes. Responses of unknown length are " +
			"always compressed.",
		Values: fmt.Sprintf("a number from 0 to %d", maxMinLength), Example: "256", Default: "20",
		Parse: nginx.Into(func(c *Config) *int { return &c.Global.Compression.Brotli.MinSize }, orNone(maxMinLength)),
	}
	brotliTypes = Key{
		Name: "brotli-types", Scope: process,
		Doc:    "The media types of responses that Brotli compresses, in addition to text/html.",
		Values: codingTypes, Example: "text/css application/json", Default: typesDefault,
		Parse: nginx.Into(func(c *Config) *[]string { return &c.Global.Compression.Brotli.Types }, readTypes),
		Lines: true,
	}
)

// orNone returns a parser for a number from 0 to most. The parser returns -1 for the value 0, because a zero in the
// parsed configuration means the default.
func orNone(most int) func(string) (int, error) {
	return func(value string) (int, error) {
		n, err := nginx.Number(0, most)(value)
		if err == nil && n == 0 {
			n = -1
		}
		return n, err
	}
}

// readTypes reads a space-separated list of media types, and returns them in lower case and sorted.
func readTypes(value string) ([]string, error) {
	types := strings.Fields(strings.ToLower(value))
	for _, media := range types {
		if media == "*" {
			continue
		}
		kind, rest, _ := strings.Cut(media, "/")
		for _, part := range []string{kind, rest} {
			if _, err := nginx.Chars("-+._", maxTypeBytes)(part); err != nil || part == "" {
				return nil, fmt.Errorf("%s is not a media type such as text/css", nginx.Quote(media))
			}
		}
	}
	slices.Sort(types)
	return slices.Compact(types), nil
}

func readAgents(value string) (string, error) {
	if strings.ContainsFunc(value, nginx.IsControl) {
		return "", errors.New("the value contains a line break or another control character")
	}
	_, err := pattern.CompileFold(value)
	if err != nil {
		return "", err
	}
	return value, nil
}
