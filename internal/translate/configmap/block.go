package configmap

import (
	"errors"
	"fmt"
	"strings"

	"github.com/k8singress/k8singress/internal/model/nginx"
	"github.com/k8singress/k8singress/internal/model/pattern"
)

const (
	blockDoc = "The key applies to all hosts, and is checked before everything else, including the redirect to " +
		"HTTPS. The key applies neither to TLS connections that ssl-passthrough forwards, nor to connections of TCP " +
		"and UDP ports."
	textValues = "comma-separated strings and regular expressions (RE2); an expression follows `~`, or `~*` to " +
		"ignore case"
	textDoc = "An entry without `~` must be equal to the whole value of the header, ignoring case. A regular " +
		"expression may match any part of the value. Quotes around an entry are removed.\n\n"
	allRefused = "all requests for all Ingresses get 503"
)

// The ConfigMap keys that block clients and requests: matching requests for all hosts get 403.
var (
	blockCIDRs = Key{
		Name: "block-cidrs", Scope: process,
		Doc:     "The networks whose clients get 403. " + blockDoc,
		Values:  "networks and addresses, separated by commas or line breaks",
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

// close makes all requests for all Ingresses get 503. It is called if the value of a key that may restrict access is
// invalid.
func (c *Config) close() { c.Defaults.Closed = true }

// readTexts reads a comma-separated list of strings and regular expressions.
func readTexts(value string) ([]string, error) {
	var list []string
	for text := range strings.SplitSeq(value, ",") {
		entry := strings.TrimSpace(text)
		if entry == "" {
			continue
		}
		if strings.ContainsFunc(entry, nginx.IsControl) {
			return nil,
				fmt.Errorf("%s contains a line break or another control character: separate entries by commas",
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
	"an entry starts with a quote and does not end with one: write quotes at both ends or none, without a comma " +
		"between them")

// unescaped replaces the escape sequences that nginx knows. A backslash before any other character is kept.
var unescaped = strings.NewReplacer(`\"`, `"`, `\'`, `'`, `\\`, `\`, `\t`, "\t", `\r`, "\r", `\n`, "\n")

// unquote removes the quotes and escape sequences from a word, as nginx does when it reads its configuration.
func unquote(word string) (string, error) {
	if q := word[0]; q == '"' || q == '\'' {
		if len(word) == 1 || word[len(word)-1] != q {
			return "", errQuote
		}
		word = word[1 : len(word)-1]
	}
	return unescaped.Replace(word), nil
}
