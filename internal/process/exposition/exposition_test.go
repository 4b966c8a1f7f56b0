package exposition_test

import (
	"bytes"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/k8singress/k8singress/internal/process/exposition"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

var (
	text     = expfmt.NewFormat(expfmt.TypeTextPlain)
	protobuf = expfmt.NewFormat(expfmt.TypeProtoDelim)
)

// decode returns the families in a response.
func decode(t testing.TB, r io.Reader, format expfmt.Format) map[string]*dto.MetricFamily {
	t.Helper()
	families, err := fixture.ReadMetrics(r, format)
	if err != nil {
		t.Fatalf("the response cannot be parsed: %v", err)
	}
	return families
}

// write writes one family of each kind, with the given value of a label.
func write(w *exposition.Writer, value string) {
	w.Family(exposition.Family{Name: "none", Help: "A family without metrics.", Kind: exposition.Gauge})
	w.Family(exposition.Family{Name: "requests", Help: "Two lines,\nwith a \\.", Kind: exposition.Counter})
	w.Value(3, exposition.Label{Name: "path", Value: value}, exposition.Label{Name: "host", Value: ""})
	w.Value(1e15, exposition.Label{Name: "path", Value: "other"}, exposition.Label{Name: "host", Value: ""})
	w.Family(exposition.Family{Name: "hash", Help: "A gauge.", Kind: exposition.Gauge})
	w.Value(math.Inf(-1))
	w.Family(exposition.Family{Name: "size", Help: "A histogram.", Kind: exposition.Histogram})
	w.Histogram(&exposition.Buckets{Bounds: []float64{0.005, 10, 1e7}, Counts: []uint64{1, 0, 2, 4}, Sum: 12.5},
		exposition.Label{Name: "path", Value: value})
	w.Histogram(&exposition.Buckets{Bounds: []float64{1}, Counts: []uint64{0, 1}, Sum: 2})
	w.Family(exposition.Family{Name: "latency", Help: "A summary.", Kind: exposition.Summary})
	w.Summary(0.25, 2, exposition.Label{Name: "path", Value: value})
	common := []exposition.Label{{Name: "path", Value: value}, {Name: "host", Value: "b"}}
	w.Family(exposition.Family{Name: "common", Help: "Common labels.", Kind: exposition.Gauge})
	w.With(common, exposition.Text(common))
	w.Value(1, exposition.Label{Name: "code", Value: "2"})
	w.Value(2)
	w.With(nil, "")
	w.Value(3, exposition.Label{Name: "code", Value: "3"})
	w.With(common, exposition.Text(common))
	w.Family(exposition.Family{Name: "uncommon", Help: "No labels.", Kind: exposition.Gauge})
	w.Value(4)
}

// TestFormats checks that a parser gets the same metrics from both formats.
func TestFormats(t *testing.T) {
	got := map[expfmt.Format]map[string]*dto.MetricFamily{}
	for _, format := range []expfmt.Format{text, protobuf} {
		var b bytes.Buffer
		w := exposition.New(&b, format)
		write(w, "/<b>\"\\\n")
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		got[format] = decode(t, &b, format)
	}
	// The text has a bucket without a bound, which is left out in messages.
	for _, f := range got[text] {
		for _, m := range f.GetMetric() {
			if h := m.GetHistogram(); h != nil {
				h.Bucket = h.GetBucket()[:len(h.GetBucket())-1]
			}
		}
	}
	if diff := cmp.Diff(got[text], got[protobuf], protocmp.Transform()); diff != "" {
		t.Errorf("the formats differ (-text +protobuf):\n%s", diff)
	}
	f := got[text]["requests"]
	if f.GetHelp() != "Two lines,\nwith a \\." || f.GetMetric()[0].GetLabel()[0].GetValue() != "/<b>\"\\\n" {
		t.Errorf("the text has changed: %v", f)
	}
	size := got[text]["size"].GetMetric()[0].GetHistogram()
	if size.GetSampleCount() != 7 || size.GetBucket()[2].GetCumulativeCount() != 3 || got[text]["none"] != nil {
		t.Errorf("the families are %v", got[text])
	}
}

// TestText checks the exact text, including the buckets' bounds, which queries compare as text.
func TestText(t *testing.T) {
	var b strings.Builder
	w := exposition.New(&b, text)
	w.Family(exposition.Family{Name: "sent", Help: "Bytes.", Kind: exposition.Histogram})
	w.Histogram(&exposition.Buckets{Bounds: []float64{0.005, 10, 1e6}, Counts: []uint64{1, 1, 0, 0}, Sum: 3.25},
		exposition.Label{Name: "a", Value: "b"})
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	const want = `# HELP sent Bytes.
# TYPE sent histogram
sent_bucket{a="b",le="0.005"} 1
sent_bucket{a="b",le="10"} 2
sent_bucket{a="b",le="1e+06"} 2
sent_bucket{a="b",le="+Inf"} 2
sent_sum{a="b"} 3.25
sent_count{a="b"} 2
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// slow is a client that takes a message in a millisecond.
type slow struct{ writes int }

func (s *slow) Write(p []byte) (int, error) {
	s.writes++
	<-time.After(time.Millisecond)
	return len(p), nil
}

// TestPauses checks that a Writer pauses after some work, so that requests go on. Time only passes while all goroutines
// wait.
func TestPauses(t *testing.T) {
	for _, format := range []expfmt.Format{text, protobuf} {
		synctest.Test(t, func(t *testing.T) {
			began, to := time.Now(), new(slow)
			w := exposition.New(to, format)
			w.Family(exposition.Family{Name: "requests", Help: "Requests.", Kind: exposition.Counter})
			for range 10_000 {
				w.Value(1, exposition.Label{Name: "path", Value: "/"})
			}
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
			if paused := time.Since(began) - time.Duration(to.writes)*time.Millisecond; paused < time.Millisecond/2 {
				t.Errorf("%s: there are pauses of %v for %d writes", format, paused, to.writes)
			}
		})
	}
}

// sizes records how many bytes each call of Write gets, and fails after a number of calls.
type sizes struct {
	largest, calls, failAfter int
}

var errClosed = errors.New("the connection is closed")

func (s *sizes) Write(p []byte) (int, error) {
	s.calls++
	s.largest = max(s.largest, len(p))
	if s.failAfter > 0 && s.calls > s.failAfter {
		return 0, errClosed
	}
	return len(p), nil
}

// TestWritesWhileItWalks checks that no format holds all metrics, and that nothing is written after an error.
func TestWritesWhileItWalks(t *testing.T) {
	const count = 20_000
	for _, format := range []expfmt.Format{text, protobuf} {
		for _, failAfter := range []int{0, 2} {
			to := &sizes{failAfter: failAfter}
			w := exposition.New(to, format)
			w.Family(exposition.Family{Name: "requests", Help: "Requests.", Kind: exposition.Counter})
			walked := 0
			for ; walked < count && w.Err() == nil; walked++ {
				w.Value(1, exposition.Label{Name: "path", Value: strings.Repeat("x", 100)})
			}
			err := w.Flush()
			if failed := failAfter > 0; failed != errors.Is(err, errClosed) || failed != (walked < count) ||
				failed && to.calls != failAfter+1 {
				t.Errorf("%s: %d metrics, %d writes, error %v", format, walked, to.calls, err)
			}
			if to.largest > 64<<10 {
				t.Errorf("%s: %d bytes were held", format, to.largest)
			}
		}
	}
}

// FuzzLabels checks that each value of a label arrives, with invalid UTF-8 replaced.
func FuzzLabels(f *testing.F) {
	for _, value := range []string{"", "/", "a\nb", `"`, `\`, `\n`, "\xff", "日本", "\x00"} {
		f.Add(value)
	}
	f.Fuzz(func(t *testing.T, value string) {
		want := strings.ToValidUTF8(value, "�")
		for _, format := range []expfmt.Format{text, protobuf} {
			var b bytes.Buffer
			w := exposition.New(&b, format)
			write(w, value)
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
			if format == text && !utf8.Valid(b.Bytes()) {
				t.Fatalf("%q is not valid UTF-8", b.String())
			}
			got := decode(t, &b, format)["requests"].GetMetric()[0].GetLabel()[0].GetValue()
			if got != want {
				t.Errorf("%s: the value is %q, want %q", format, got, want)
			}
		}
	})
}
