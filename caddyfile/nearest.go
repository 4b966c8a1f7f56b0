package caddyfile

import "github.com/k8singress/k8singress/internal/nearest"

// nearestOption returns the option that a word was probably meant to be, or nothing.
func nearestOption(word string) string {
	names := make([]string, len(options))
	for i := range options {
		names[i] = options[i].name
	}
	return nearest.Of(word, names)
}
