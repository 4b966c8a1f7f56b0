package configmap

import "github.com/k8singress/k8singress/internal/annotations"

// globalAuth is a key that asks a service about the requests for all Ingresses that ask none themselves.
func globalAuth(name string) Key { return ofIngresses(annotations.GlobalAuth(name)) }
