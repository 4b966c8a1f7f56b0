package configmap

import (
	"testing"

	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/translate/annotations"
)

// TestPanicInAConfigMapIsIsolated checks that a panic while parsing affects only the Ingresses that use the ConfigMap,
// and that these return 503.
func TestPanicInAConfigMapIsIsolated(t *testing.T) {
	table := Table
	t.Cleanup(func() { Table = table })
	Table = append(Table[:len(Table):len(Table)],
		Key{Name: "faulty", Parse: func(*Config, string) error { panic("out of range") }})
	data := map[string]string{"faulty": "x", "proxy-body-size": "8m"}
	config, problems := parse(data)
	if !config.Defaults.Closed || len(problems) != 1 || problems[0].Reason != report.Quarantined {
		t.Errorf("closed: %t, problems %v", config.Defaults.Closed, problems)
	}
	base := annotations.Settings{RewriteTarget: "/base"}
	class, problems := ParseClass(base, data)
	if !class.Closed || class.RewriteTarget != "/base" || len(problems) != 1 ||
		problems[0].Reason != report.Quarantined {
		t.Errorf("of a class: closed %t, problems %v", class.Closed, problems)
	}
}
