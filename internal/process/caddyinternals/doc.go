// Package caddyinternals contains all code of this project that uses parts of Caddy, certmagic or acmez outside their
// public API. design/011-reaching-into-caddy.md explains each of them, and which change to Caddy would make it
// unnecessary.
//
// Each function documents what it relies on, and returns an error, nothing or false if its assumption is wrong. A
// different version of Caddy therefore only disables the feature and never ends the process. Each function has a test
// that names the versions it was written for and what to check if it fails.
package caddyinternals
