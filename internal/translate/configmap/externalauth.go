package configmap

import "github.com/k8singress/k8singress/internal/translate/annotations"

// globalAuth returns the ConfigMap key for an annotation of external authentication. It applies to all Ingresses
// without auth-url.
func globalAuth(name string) Key { return ofIngresses(annotations.GlobalAuth(name)) }
