//go:build race

package harness

// raceEnabled makes Caddy run with the race detector whenever the test does.
const raceEnabled = true
