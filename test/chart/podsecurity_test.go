package chart

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

// TestPodSecurity: the pods are admitted where Pod Security enforces restricted: those of the defaults, with the
// default backend, and with ports of the nodes, which is the one thing that another level has to allow.
func TestPodSecurity(t *testing.T) {
	for name, c := range map[string]struct {
		with  values
		level api.Level
	}{
		"defaults":     {values{"defaultBackend": values{"enabled": true}}, api.LevelRestricted},
		"DaemonSet":    {values{"controller": values{"kind": "DaemonSet"}}, api.LevelRestricted},
		"host network": {values{"controller": values{"hostNetwork": true}}, api.LevelPrivileged},
	} {
		for _, version := range []string{oldest[:5], newest[:5], "latest"} {
			parsed, err := api.ParseVersion(version)
			if err != nil {
				t.Fatal(err)
			}
			if details := forbidden(t, api.LevelVersion{Level: c.level, Version: parsed},
				pods(t, mustRender(t, c.with))); len(details) > 0 {
				t.Errorf("%s, %s: %s", name, version, details)
			}
		}
	}
}

// forbidden is what a level of Pod Security has against pods.
func forbidden(t *testing.T, level api.LevelVersion, all []corev1.PodTemplateSpec) (details []string) {
	t.Helper()
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range all {
		if result := policy.AggregateCheckResults(evaluator.EvaluatePod(level, &pod.ObjectMeta,
			&pod.Spec)); !result.Allowed {
			details = append(details, result.ForbiddenDetail())
		}
	}
	return details
}

// pods are the templates of Deployments and DaemonSets.
func pods(t *testing.T, r rendered) (all []corev1.PodTemplateSpec) {
	t.Helper()
	for _, object := range r.objects(t) {
		var workload appsv1.Deployment
		if kind := object["kind"]; kind != "Deployment" && kind != "DaemonSet" {
			continue
		}
		delete(object["spec"].(values), "updateStrategy")
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object, &workload,
			true); err != nil {
			t.Fatal(err)
		}
		all = append(all, workload.Spec.Template)
	}
	if len(all) == 0 {
		t.Fatal("there is no pod")
	}
	return all
}
