package chart

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

// TestPodSecurity checks that the level restricted of Pod Security admits the pods with the default values, and with
// the default backend. With ports of the nodes, it checks that these are the only reason for another level.
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

// forbidden returns the reasons for which a level of Pod Security rejects pods.
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

// pods returns the pod templates of Deployments and DaemonSets.
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
