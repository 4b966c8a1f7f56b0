// Package golden holds golden tests of the translation of manifests into the whole Caddy document and the verdict on
// each object. A case is a folder of testdata with in.yaml, which kubectl could apply, config.json and report.yaml,
// and options.json if it needs options. `make golden` rewrites the expected files; always read the difference.
package golden
