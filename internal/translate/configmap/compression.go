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
	// mostLeast is the maximum of gzip-min-length and brotli-min-length, in bytes.
	mostLeast = 1 << 30
	// mostTypeBytes is the maximum length of each part of a media type, in bytes.
	mostTypeBytes = 128
	codingTypes   = "media types with spaces between them, or `*` for all"
	typesDefault  = "those of ingress-nginx"
	codingDoc     = "Answers with the status 200, 403 or 404 are, to clients that accept it with HTTP/1.1 and " +
		"above; not those that are compressed already, that say `no-transform`, or that are streams of events or gRPC."
)

// The keys for compression.
var (
	useGzip = Key{
		Name: "use-gzip", Scope: process, Doc: "Compresses answers by gzip. " + codingDoc,
		Values: booleans, Example: "true", Default: "false",
		Parse: nginx.Into(func(c *Config) *bool { return &c.Global.Compression.Gzip.On }, nginx.Bool),
	}
	gzipLevel = Key{
		Name: "gzip-level", Scope: process, Doc: "How hard gzip tries. A higher level takes more time.",
		Values: "a number from 1 to 9", Example: "5", Default: "1",
		Parse: nginx.Into(func(c *Config) *int { return &c.Global.Compression.Gzip.Level }, nginx.Number(1, 9)),
	}
	gzipMinLength = Key{
		Name: "gzip-min-length", Scope: process,
		Doc:    "How many bytes a body has that gzip compresses, where its length is known.",
		Values: fmt.Sprintf("a number from 0 to %d", mostLeast), Example: "1000", Default: "256",
		Parse: nginx.Into(func(c *Config) *int { return &c.Global.Compression.Gzip.Least }, orNone(mostLeast)),
	}
	gzipTypes = Key{
		Name: "gzip-types", Scope: process, Doc: "The types of answers that gzip compresses, besides text/html.",
		Values: codingTypes, Example: "text/css application/json", Default: typesDefault,
		Parse: nginx.Into(func(c *Config) *[]string { return &c.Global.Compression.Gzip.Types }, readTypes),
		Lines: true,
	}
	gzipDisable = Key{
		Name: "gzip-disable", Scope: process,
		Doc: "A regular expression of the kind RE2, in any case: a client with such a User-Agent gets no gzip. " +
			"`msie6` stands for the Internet Explorers 4 and 5, and 6 without SV1, as in nginx.",
		Values: "a regular expression, or `msie6`", Example: "old browser", Default: "none",
		Parse: nginx.Into(func(c *Config) *string { return &c.Global.Compression.GzipDisable }, readAgents),
	}
	enableBrotli = Key{
		Name: "enable-brotli", Scope: process,
		Doc:    "Compresses answers by Brotli, which goes before gzip. " + codingDoc,
		Values: booleans, Example: "true", Default: "false",
		Parse: nginx.Into(func(c *Config) *bool { return &c.Global.Compression.Brotli.On }, nginx.Bool),
	}
	brotliLevel = Key{
		Name: "brotli-level", Scope: process,
		Doc:    "How hard Brotli tries. A higher level takes more time, and from 10 on very much of it.",
		Values: "a number from 0 to 11", Example: "5", Default: "4",
		Parse: nginx.Into(func(c *Config) *int { return &c.Global.Compression.Brotli.Level }, orNone(11)),
	}
	brotliMinLength = Key{
		Name: "brotli-min-length", Scope: process,
		Doc:    "How many bytes a body has that Brotli compresses, where its length is known.",
		Values: fmt.Sprintf("a number from 0 to %d", mostLeast), Example: "256", Default: "20",
		Parse: nginx.Into(func(c *Config) *int { return &c.Global.Compression.Brotli.Least }, orNone(mostLeast)),
	}
	brotliTypes = Key{
		Name: "brotli-types", Scope: process, Doc: "The types of answers that Brotli compresses, besides text/html.",
		Values: codingTypes, Example: "text/css application/json", Default: typesDefault,
		Parse: nginx.Into(func(c *Config) *[]string { return &c.Global.Compression.Brotli.Types }, readTypes),
		Lines: true,
	}
)

// orNone returns a parser for a number from 0 to most. It returns -1 for 0, because a zero field means the default.
func orNone(most int) func(string) (int, error) {
	return func(value string) (int, error) {
		n, err := nginx.Number(0, most)(value)
		if err == nil && n == 0 {
			n = -1
		}
		return n, err
	}
}

// readTypes returns the media types sorted and in lower case.
func readTypes(value string) ([]string, error) {
	types := strings.Fields(strings.ToLower(value))
	for _, media := range types {
		if media == "*" {
			continue
		}
		kind, rest, _ := strings.Cut(media, "/")
		for _, part := range []string{kind, rest} {
			if _, err := nginx.Chars("-+._", mostTypeBytes)(part); err != nil || part == "" {
				return nil, fmt.Errorf("%s is not a media type such as text/css", nginx.Quote(media))
			}
		}
	}
	slices.Sort(types)
	return slices.Compact(types), nil
}

func readAgents(value string) (string, error) {
	if strings.ContainsFunc(value, nginx.IsControl) {
		return "", errors.New("it has a line break or another control character in it")
	}
	_, err := pattern.CompileFold(value)
	if err != nil {
		return "", err
	}
	return value, nil
}
