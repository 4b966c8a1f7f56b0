package caddyfile

// This registers the storage module, which parses its own block in a Caddyfile.
import _ "github.com/k8singress/k8singress/k8singress"
