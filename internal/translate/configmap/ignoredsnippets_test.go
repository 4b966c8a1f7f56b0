package configmap

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/translate/annotations"
)

// TestIgnoredSnippets checks that main-snippet and stream-snippet change nothing, and get a warning or an information
// for each line.
func TestIgnoredSnippets(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"main-snippet", "false", ""},
		{"main-snippet", "env A;\nworker_processes 4;",
			`warning: line 1: "env" is left out: nothing here reads environment variables for a snippet` + "\n" +
				`info: line 2: "worker_processes" has no effect: ` +
				"the controller is one process that uses all processors of its pod"},
		{"main-snippet", "env A", "warning: line 1: the text is not valid nginx configuration: " +
			`the text ends inside a directive: add ";"`},
		{"main-snippet", strings.Repeat("env A;", 20_000), "warning: the text is longer than 65536 bytes: shorten it"},
		{"stream-snippet", "server { listen 53 udp; proxy_pass dns.infra.svc:53; }",
			`warning: line 1: "server" is left out: ` +
				`add "53": infra/dns:53 to the ConfigMap of the option udp_services`},
		{"stream-snippet", "server { listen 53 udp;", "warning: line 1: the text is not valid nginx configuration: " +
			`the text ends inside a block: add "}", or quotes around an argument that contains "{"`},
	} {
		config, problems := parse(map[string]string{test.name: test.text})
		var got []string
		for _, p := range problems {
			got = append(got, fmt.Sprintf("%s: %s", p.Severity, p.Message))
			if p.Reason != report.UnsupportedValue || p.Field != "data["+test.name+"]" {
				t.Errorf("%s: got %v", test.name, p)
			}
		}
		if diff := cmp.Diff(test.want, strings.Join(got, "\n")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
		if config.Defaults.Closed || len(config.Defaults.Filters("/")) > 0 {
			t.Errorf("%s closes Ingresses", test.name)
		}
		_, problems = ParseClass(annotations.Settings{}, map[string]string{test.name: test.text})
		if test.want != "" && (len(problems) != 1 || !strings.Contains(problems[0].Message, "move it to the global")) {
			t.Errorf("%s in the ConfigMap of a class: got %v", test.name, problems)
		}
	}
}
