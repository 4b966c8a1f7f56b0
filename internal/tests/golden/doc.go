// Package golden tests the translation of manifests into the complete Caddy configuration, and the problems that are
// reported for each object. A test case is a folder of testdata with the manifests in.yaml, the expected config.json
// and report.yaml, and options.json if the case needs options. `make golden` rewrites the expected files; always read
// the difference.
package golden
