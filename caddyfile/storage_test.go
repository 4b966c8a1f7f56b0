package caddyfile

// The storage module parses its own lines of a Caddyfile.
import _ "github.com/k8singress/k8singress/k8singress"
