package configmap

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/translate/annotations"
)

func TestStreams(t *testing.T) {
	for _, test := range []struct {
		data map[string]string
		want ir.StreamPolicy
	}{
		{map[string]string{"proxy-stream-timeout": "10m"}, ir.StreamPolicy{IdleTimeout: 10 * time.Minute}},
		{map[string]string{"proxy-stream-timeout": "600"}, ir.StreamPolicy{IdleTimeout: 10 * time.Minute}},
		{map[string]string{"proxy-stream-timeout": ""}, ir.StreamPolicy{}},
		{map[string]string{"proxy-stream-next-upstream": "true"}, ir.StreamPolicy{}},
		{map[string]string{"proxy-stream-next-upstream": "false"}, ir.StreamPolicy{Tries: 1}},
		{map[string]string{"proxy-stream-next-upstream": "false", "proxy-stream-next-upstream-tries": "5"},
			ir.StreamPolicy{Tries: 1}},
		{map[string]string{"proxy-stream-next-upstream-tries": "5"}, ir.StreamPolicy{Tries: 5}},
		{map[string]string{"proxy-stream-next-upstream-tries": "0"}, ir.StreamPolicy{Tries: 100}},
		{map[string]string{"proxy-stream-next-upstream-tries": "1000"}, ir.StreamPolicy{Tries: 100}},
		{map[string]string{"proxy-stream-next-upstream-timeout": "30s"},
			ir.StreamPolicy{TriesTimeout: 30 * time.Second}},
		{map[string]string{"proxy-stream-next-upstream-timeout": "0"},
			ir.StreamPolicy{TriesTimeout: 365 * 24 * time.Hour}},
		{map[string]string{"proxy-stream-responses": "2"}, ir.StreamPolicy{Responses: 2}},
		{map[string]string{"proxy-stream-responses": "0"}, ir.StreamPolicy{}},
	} {
		config, problems := parse(test.data)
		if diff := cmp.Diff(test.want, config.Global.Streams); diff != "" || len(problems) > 0 {
			t.Errorf("%v: %v, and (-want +got):\n%s", test.data, problems, diff)
		}
	}
}

func TestStreamsRefused(t *testing.T) {
	for name, value := range map[string]string{
		"proxy-stream-timeout": "0", "proxy-stream-next-upstream": "off", "proxy-stream-next-upstream-tries": "-1",
		"proxy-stream-next-upstream-timeout": "soon", "proxy-stream-responses": "many",
	} {
		config, problems := parse(map[string]string{name: value, "proxy-read-timeout": "7"})
		if config.Global.Streams != (ir.StreamPolicy{}) || config.Defaults.Attempts.Read != 7*time.Second {
			t.Errorf("%s %s makes %+v, and other keys %+v", name, value, config.Global.Streams,
				config.Defaults.Attempts)
		}
		if len(problems) != 1 || problems[0].Reason != report.InvalidEntry || problems[0].Field != "data["+name+"]" {
			t.Errorf("%s %s: the problems are %+v", name, value, problems)
		}
		// Ports do not belong to a class.
		_, problems = ParseClass(annotations.Settings{}, map[string]string{name: "1"})
		if len(problems) != 1 || problems[0].Reason != report.UnknownKey {
			t.Errorf("%s in the ConfigMap of a class: the problems are %+v", name, problems)
		}
	}
}
