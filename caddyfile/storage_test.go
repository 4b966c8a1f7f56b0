package caddyfile

// The storage reads its own lines in a Caddyfile.
import _ "github.com/k8singress/k8singress/k8singress"
