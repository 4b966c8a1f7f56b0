// Package caddyinternals has every place where this project reaches into a part of Caddy, certmagic or acmez that is not
// their public API. design/011-reaching-into-caddy.md says for each one why, and which change to Caddy would end it.
//
// Each function says what it relies on, and returns an error, nothing or false where that is not as expected: a version of
// Caddy that differs costs the feature, and never ends the process. Each has a test, which names the versions that the
// function was written against, and says what to look at when it fails.
package caddyinternals
