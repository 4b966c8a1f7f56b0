package annotations_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/tests/fixture"
	"github.com/k8singress/k8singress/internal/translate/annotations"
)

// TestControlCharacters checks for each annotation of one line that a line break or another control character makes its
// value invalid, wherever it stands. The author reads which character it is. If the annotation is a guard, requests are
// rejected, as for any invalid value. In ingress-nginx, such values became lines of configuration (CVE-2024-7646).
func TestControlCharacters(t *testing.T) {
	for i := range annotations.Table {
		row := &annotations.Table[i]
		if row.Lines || row.Ignored != "" {
			continue
		}
		for _, char := range []string{"\n", "\r", "\x00", "\u2028"} {
			for _, value := range []string{
				row.Example + char + "x", row.Example[:1] + char + row.Example[1:] + "x", "x" + char + row.Example,
			} {
				settings, problems := annotations.Parse(annotations.Settings{},
					map[string]string{annotations.Key(row.Name): value})
				name := fmt.Sprintf("U+%04X", []rune(char)[0])
				if len(problems) != 1 || problems[0].Severity != report.Error ||
					!strings.Contains(problems[0].Message, name) {
					t.Errorf("%s: %q: got %v, want an error with %s", row.Name, value, problems, name)
					continue
				}
				left := fixture.Refused(row, value, problems[0].Message)
				want, _ := annotations.Parse(left, nil)
				if diff := cmp.Diff(want, settings); diff != "" {
					t.Errorf("%s: %q leaves other settings than an invalid value (-want +got):\n%s", row.Name, value,
						diff)
				}
			}
		}
	}
}
