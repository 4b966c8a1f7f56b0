package report

import "slices"

// WithSummariesOf returns a report in which each summary has the message that it had in the report before. Summaries
// that are not in before, and all other problems, stay as they are. If no message differs, it returns r. It changes
// neither report.
func (r *Report) WithSummariesOf(before *Report) *Report {
	steady := r
	for _, v := range Changed(before, r) {
		old := before.Get(v.Object)
		if old == nil {
			continue
		}
		held := v.withSummariesOf(old)
		if held == v {
			continue
		}
		if steady == r {
			steady = &Report{Verdicts: slices.Clone(r.Verdicts)}
		}
		steady.Verdicts[slices.Index(steady.Verdicts, v)] = held
	}
	return steady
}

// withSummariesOf returns v with the summaries of the verdict old. It returns v or old if the result is equal to it.
func (v *Verdict) withSummariesOf(old *Verdict) *Verdict {
	held := v
	for n, p := range v.Problems {
		i := slices.IndexFunc(old.Problems, p.rewords)
		if i < 0 {
			continue
		}
		if held == v {
			held = &Verdict{Object: v.Object, Parents: v.Parents, Problems: slices.Clone(v.Problems)}
		}
		held.Problems[n].Message = old.Problems[i].Message
	}
	if held.Equal(old) {
		return old
	}
	return held
}

// rewords reports whether p and old are the same summary with different messages.
func (p Problem) rewords(old Problem) bool {
	words := old.Message
	old.Message = p.Message
	return p.Summary && p == old && p.Message != words
}
