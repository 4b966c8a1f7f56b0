// Package caddyinternals contains all code of this project that uses parts of Caddy, certmagic or acmez outside their
// public API. design/011-reaching-into-caddy.md explains each of these uses, and which change to Caddy would make it
// unnecessary.
//
// Each function documents the assumptions that it relies on. If an assumption is wrong, the function returns an error,
// nil or false. A different version of Caddy therefore only disables a feature and never ends the process. Each
// function has a test that says for which versions it was written, and what to check if it fails.
package caddyinternals
