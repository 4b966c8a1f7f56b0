// Package plugins tests the plugins of xcaddy.json in handler chains and issuers, with a Caddy that xcaddy has built.
// `make plugins` builds it and runs the tests.
package plugins
