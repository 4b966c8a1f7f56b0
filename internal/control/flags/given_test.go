package flags_test

import (
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/control/flags"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/model/settings"
)

// TestGiven checks what happens to a flag that is given twice, without a value, or with a reference to a variable.
func TestGiven(t *testing.T) {
	for _, c := range []struct {
		name string
		// flags are separated by spaces. Each is NAME=VALUE.
		flags    string
		severity report.Severity
		// flag and says are the flag and a part of the message. They are empty if there must be no problem.
		flag, says string
	}{
		{"a number without a value", "http-port=", report.Error, "http-port", "write a port, or remove the flag"},
		{"a boolean without a value", "update-status=", report.Error, "update-status", "write true or false"},
		{"a duration without a value", "election-ttl=", report.Error, "election-ttl", "write a duration such as 30s"},
		{"buckets without a value", "time-buckets=", report.Error, "time-buckets", "write a list"},
		{"buckets with an empty value", "time-buckets=1 time-buckets=", report.Error, "time-buckets",
			`"" is not a number`},
		{"no excluded metrics", "exclude-socket-metrics=", "", "", ""},
		{"no ConfigMap", "configmap=", "", "", ""},
		{"all namespaces", "watch-namespace=", report.Warning, "watch-namespace", "the default has an effect (all)"},
		{"the default class", "ingress-class=", report.Warning, "ingress-class", "the default has an effect (nginx)"},
		{"no effect", "sync-period=", report.Warning, "sync-period", "this flag has no effect: the controller watches"},

		{"the same twice", "http-port=80 http-port=80", "", "", ""},
		{"two numbers", "http-port=80 http-port=81", report.Warning, "http-port", `the last one, "81", has an effect`},
		{"first and last", "v=1 v=2 v=1", report.Warning, "v", `the last one, "1", has an effect`},
		{"two lists", "time-buckets=1,2 time-buckets=3", "", "", ""},

		{"a field of the pod", "configmap=$(POD_NAMESPACE)/a", report.Error, "configmap",
			"$(POD_NAMESPACE), which Kubernetes has not replaced, because the container has no environment variable " +
				"POD_NAMESPACE: add POD_NAMESPACE to env of the container (valueFrom.fieldRef.fieldPath: " +
				"metadata.namespace), or write the value itself"},
		{"any text", "kubeconfig=$(FILE)", report.Error, "kubeconfig", "add FILE to env of the container, or write"},
		{"syntax of a shell", "watch-namespace=${POD_NAMESPACE}", report.Error, "watch-namespace",
			"the value contains ${POD_NAMESPACE}, and Kubernetes replaces only the form $(POD_NAMESPACE)"},
		{"no reference", "kubeconfig=$()/${}", "", "", ""},
	} {
		given := flags.Given{}
		for flag := range strings.FieldsSeq(c.flags) {
			name, value, _ := strings.Cut(flag, "=")
			given[name] = append(given[name], value)
		}
		_, problems := flags.Apply(settings.Config{}, given)
		switch {
		case c.flag == "" && len(problems) == 0:
		case len(problems) != 1 || problems[0].Severity != c.severity || problems[0].Field != "--"+c.flag ||
			!strings.Contains(problems[0].Message, c.says):
			t.Errorf("%s: %v", c.name, problems)
		}
	}
}
