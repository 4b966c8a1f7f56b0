package lint

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/model/settings"
	"github.com/k8singress/k8singress/internal/model/snapshot"
	"github.com/k8singress/k8singress/internal/translate/annotations"
	"github.com/k8singress/k8singress/internal/translate/configmap"
	"github.com/k8singress/k8singress/internal/translate/ingress"
)

// PathTypes returns a verdict (the reported status of an object) for each Ingress in r with a path that ingress-nginx
// would reject because of its path type. Package translate does not report such paths, because this controller serves
// them. PathTypes returns nil if the ConfigMap sets strict-validate-path-type to false. options contains the name of
// the ConfigMap; it is nil if there is no Caddyfile.
func PathTypes(s *snapshot.Snapshot, options *settings.Config, r *report.Report) (verdicts []*report.Verdict) {
	if options != nil {
		if c, ok := snapshot.Of[*corev1.ConfigMap](s).Get(options.ConfigMap.Namespace, options.ConfigMap.Name); ok {
			if config, _ := configmap.Parse(annotations.Settings{}, c.Data); config.AnyPathType {
				return nil
			}
		}
	}
	for _, v := range r.Verdicts {
		o, ok := snapshot.Of[*networkingv1.Ingress](s).Get(v.Object.Namespace, v.Object.Name)
		if !ok || v.Object != snapshot.RefOf(o) {
			continue
		}
		if problems := pathTypes(o); problems != nil {
			verdicts = append(verdicts, &report.Verdict{Object: v.Object, Problems: problems})
		}
	}
	return verdicts
}

func pathTypes(o *networkingv1.Ingress) (problems []report.Problem) {
	for p := range ingress.StrictPaths(o) {
		problems = append(problems, report.Problem{
			Severity: report.Warning, Reason: report.InvalidPath, Field: p.Field,
			Message: fmt.Sprintf(
				"ingress-nginx rejects an Ingress with such a path and the pathType %s (key "+
					"strict-validate-path-type), but k8singress serves it: for a regular expression, write "+
					"ImplementationSpecific", p.Type),
		})
	}
	return problems
}
