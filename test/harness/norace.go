//go:build !race

package harness

// RaceEnabled reports whether the tests run with the race detector. Caddy then runs with it, too, and both are several
// times slower.
const RaceEnabled = false
