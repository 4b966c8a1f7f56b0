package configmap

import "github.com/k8singress/k8singress/internal/translate/annotations"

// globalAuth returns a key that configures external authentication for all Ingresses without auth-url.
func globalAuth(name string) Key { return ofIngresses(annotations.GlobalAuth(name)) }
