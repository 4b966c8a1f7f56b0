package admission

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/k8singress/k8singress/internal/model/report"
)

// The API server cuts warnings that are longer than maxWarning, and drops all warnings of a request after the first
// maxWarnings bytes.
const (
	maxWarning  = 256
	maxWarnings = 4096
)

// A refusal lists at most maxRefusals problems, each with at most maxRefusal bytes. The API server logs the text, and
// returns it to the author of the Ingress.
const (
	maxRefusals = 8
	maxRefusal  = 1024
)

// answer returns the refusals as one text, and all other problems as warnings.
func (r *review) answer() *Answer {
	refused := map[string]bool{}
	for _, p := range r.refusals {
		refused[p.Field] = true
	}
	// A refused path also has a warning that it is not served.
	problems := slices.DeleteFunc(slices.Clone(r.Problems), func(p report.Problem) bool {
		return p.Reason == report.PathConflict && refused[p.Field]
	})
	return &Answer{Refusal: refusal(r.refusals), Warnings: warnings(problems)}
}

func refusal(problems []report.Problem) string {
	if len(problems) == 0 {
		return ""
	}
	lines := []string{"k8singress refuses this Ingress, and nothing was changed:"}
	for i, p := range problems {
		if i == maxRefusals {
			lines = append(lines, fmt.Sprintf("(problems that are not listed: %d)", len(problems)-i))
			break
		}
		p.Message = mistake(p.Message)
		lines = append(lines, line(p, maxRefusal))
	}
	return strings.Join(lines, "\n")
}

// mistake returns a message without its last part, which describes what happens until the mistake is corrected: an
// Ingress that is refused changes nothing.
func mistake(message string) string {
	if i := strings.LastIndex(message, report.Meanwhile); i >= 0 {
		return message[:i]
	}
	return message
}

var ranks = []report.Severity{report.Error, report.Warning, report.Info}

func warnings(problems []report.Problem) (lines []string) {
	slices.SortStableFunc(problems, func(a, b report.Problem) int {
		return cmp.Compare(slices.Index(ranks, a.Severity), slices.Index(ranks, b.Severity))
	})
	const room = maxWarnings - 64
	size := 0
	for i, p := range problems {
		text := line(p, maxWarning)
		if slices.Contains(lines, text) {
			continue
		}
		if size += len(text); size > room {
			return append(lines, fmt.Sprintf("%d more problems: see the Events of the Ingress", len(problems)-i))
		}
		lines = append(lines, text)
	}
	return lines
}

// line returns a problem as one line of at most limit bytes. Warnings are sent in HTTP headers, so they must not
// contain control characters.
func line(p report.Problem, limit int) string {
	text := p.Message
	if p.Field != "" {
		text = p.Field + ": " + text
	}
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
	return report.Cut(text, limit)
}
