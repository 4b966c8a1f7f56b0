package configmap

import (
	"errors"
	"fmt"
	"strings"

	"github.com/k8singress/k8singress/internal/model/nginx"
	"github.com/k8singress/k8singress/internal/model/pattern"
)

const (
	blockDoc = "They are refused before all else, the redirect to HTTPS included, on all hosts. Connections that " +
		"are passed through, and those of TCP and UDP ports, are not."
	textValues = "texts with commas between them, and regular expressions of the kind RE2: behind `~` for the case " +
		"as it is written, and behind `~*` for any case"
	textDoc = "A text stands for the whole of it, in any case, and a regular expression for any part of it. An " +
		"entry with quotes is read as nginx does. "
	allRefused = "all requests for all Ingresses get 503"
)

// The keys that reject requests with 403 on all hosts.
var (
	blockCIDRs = Key{
		Name: "block-cidrs", Scope: process,
		Doc:     "Networks whose clients get 403. " + blockDoc,
		Values:  "networks and addresses, with commas or line breaks between them",
		Example: "192.0.2.0/24,2001:db8::/32", Default: "none",
		Parse:   nginx.Into(func(c *Config) *[]string { return &c.Global.Block.Networks }, nginx.AllNetworks),
		OnError: (*Config).close, Meanwhile: allRefused, Lines: true,
	}
	blockUserAgents = Key{
		Name: "block-user-agents", Scope: process,
		Doc:    "Requests with one of these User-Agent headers get 403. " + textDoc + blockDoc,
		Values: textValues, Example: "curl/8.0,~*badbot", Default: "none",
		Parse:   nginx.Into(func(c *Config) *[]string { return &c.Global.Block.UserAgents }, readTexts),
		OnError: (*Config).close, Meanwhile: allRefused, Lines: true,
	}
	blockReferers = Key{
		Name: "block-referers", Scope: process,
		Doc:    "Requests with one of these Referer headers get 403. " + textDoc + blockDoc,
		Values: textValues, Example: "~^https?://spam\\.example/", Default: "none",
		Parse:   nginx.Into(func(c *Config) *[]string { return &c.Global.Block.Referers }, readTexts),
		OnError: (*Config).close, Meanwhile: allRefused, Lines: true,
	}
)

// close makes all Ingresses return 503, because an invalid key may restrict access to them.
func (c *Config) close() { c.Defaults.Closed = true }

// readTexts reads a comma-separated list of texts and regular expressions.
func readTexts(value string) ([]string, error) {
	var list []string
	for text := range strings.SplitSeq(value, ",") {
		entry := strings.TrimSpace(text)
		if entry == "" {
			continue
		}
		if strings.ContainsFunc(entry, nginx.IsControl) {
			return nil,
				fmt.Errorf("%s has a line break or another control character in it: write a comma between two entries",
					nginx.Quote(entry))
		}
		entry, err := unquote(entry)
		if err != nil {
			return nil, err
		}
		if _, err := pattern.NewTexts([]string{entry}); err != nil {
			return nil, err
		}
		list = append(list, entry)
	}
	_, err := pattern.NewTexts(list)
	return list, err
}

var errQuote = errors.New(
	"an entry begins with a quote and ends without: write one at both ends, or none, and no comma between them")

// unescaped replaces the escape sequences of nginx. A backslash before any other character is kept.
var unescaped = strings.NewReplacer(`\"`, `"`, `\'`, `'`, `\\`, `\`, `\t`, "\t", `\r`, "\r", `\n`, "\n")

// unquote returns a word as nginx reads it in its configuration.
func unquote(word string) (string, error) {
	if q := word[0]; q == '"' || q == '\'' {
		if len(word) == 1 || word[len(word)-1] != q {
			return "", errQuote
		}
		word = word[1 : len(word)-1]
	}
	return unescaped.Replace(word), nil
}
