// Package golden holds cases of what manifests become: the whole Caddy document, and the verdict on each object. A case is
// a folder of testdata with in.yaml, which kubectl could apply, config.json and report.yaml, and options.json where it
// needs options. `make golden` rewrites the expected files; the rule is to read the difference.
package golden
