//go:build race

package harness

// RaceEnabled makes Caddy run with the race detector whenever the test does. Both are several times slower then.
const RaceEnabled = true
