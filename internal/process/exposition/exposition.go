// Package exposition writes metrics in the formats that Prometheus reads. In contrast to a prometheus.Collector, a
// Writer never holds all metrics: it writes while its caller walks over the values.
package exposition

import (
	"cmp"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"google.golang.org/protobuf/proto"
)

// Kind is the type of a metric.
type Kind int

// The types of metrics.
const (
	Counter Kind = iota
	Gauge
	Histogram
	Summary
)

var kinds = map[Kind]struct {
	text     string
	protobuf dto.MetricType
}{
	Counter: {"counter", dto.MetricType_COUNTER}, Gauge: {"gauge", dto.MetricType_GAUGE},
	Histogram: {"histogram", dto.MetricType_HISTOGRAM}, Summary: {"summary", dto.MetricType_SUMMARY},
}

// Family describes the metrics with one name.
type Family struct {
	Name, Help string
	Kind       Kind
}

// Label is the name and the value of a label.
type Label struct{ Name, Value string }

// Buckets are the values of a histogram.
type Buckets struct {
	// Bounds are the upper bounds of the buckets, in ascending order and without infinity.
	Bounds []float64
	// Counts has the number of observations in each bucket. The last element, after the bounds, counts the observations
	// above all bounds.
	Counts []uint64
	Sum    float64
	// Native is the native histogram with the same observations, or nil. The text format cannot express it.
	Native *dto.Histogram
}

const (
	// turn is the time after which a Writer pauses. The processor then serves requests until the pause is over.
	// runtime.Gosched is not enough: with one processor, the scheduler would continue the Writer before it asks the
	// network for new requests.
	turn, pause = 300 * time.Microsecond, 300 * time.Microsecond
	// pending is the maximum number of bytes of text that are kept before they are written.
	pending = 32 << 10
	// chunk is the maximum number of metrics in one message of the protobuf format. Prometheus accepts several messages
	// for one name.
	chunk = 64
)

// Writer writes families of metrics one after the other. All metrics of a family must be written before the next
// family begins. After the first error of the underlying writer, its methods do nothing. While it writes, it pauses
// often, so that a response with many metrics does not delay requests.
type Writer struct {
	to     io.Writer
	text   []byte
	labels []byte
	family Family
	// common are the labels of With, and commonText is their text.
	common     []Label
	commonText string
	// bounds are the bounds of the last histogram, and boundTexts is their text.
	bounds     []float64
	boundTexts []string
	// since is the end of the last pause. timer ends a pause; it is nil before the first one.
	since time.Time
	timer *time.Timer
	// begun is true if the text of the family has begun. A family without metrics is not mentioned.
	begun bool
	// encoder is nil for the text format. message has the metrics that are not written yet.
	encoder expfmt.Encoder
	message *dto.MetricFamily
	err     error
}

// New returns a Writer for a format from expfmt.NegotiateAccept: one of the protobuf formats, or the text
// format. It does not write the OpenMetrics format, in which the names of counters end with _total.
func New(to io.Writer, format expfmt.Format) *Writer {
	w := &Writer{to: to, since: time.Now()}
	if format.FormatType() != expfmt.TypeTextPlain {
		w.encoder = expfmt.NewEncoder(to, format)
	}
	return w
}

// Family begins a family.
func (w *Writer) Family(f Family) {
	w.writeMessage()
	w.family, w.begun = f, false
	w.With(nil, "")
}

// With sets labels that the following metrics of the family have after their own labels, until the next call. text must
// be the result of Text for the labels. So a caller whose labels seldom change can keep their text. The Writer keeps
// labels until the next call.
func (w *Writer) With(labels []Label, text string) { w.common, w.commonText = labels, text }

// Text returns labels in the text format, for With.
func Text(labels []Label) string { return string(appendLabels(nil, labels)) }

// Err returns the first error of the underlying writer. A caller with many metrics should stop if it is not nil.
func (w *Writer) Err() error { return w.err }

// Flush writes everything that is still pending. It returns the same error as Err.
func (w *Writer) Flush() error {
	w.writeMessage()
	w.writeText()
	return w.err
}

// Value writes a counter or a gauge.
func (w *Writer) Value(value float64, labels ...Label) {
	if w.encoder != nil {
		m := &dto.Metric{Label: w.pairs(labels)}
		if w.family.Kind == Counter {
			m.Counter = &dto.Counter{Value: proto.Float64(value)}
		} else {
			m.Gauge = &dto.Gauge{Value: proto.Float64(value)}
		}
		w.add(m)
		return
	}
	w.begin(labels)
	w.sample("", "", value)
	w.end()
}

// Summary writes a summary without quantiles.
func (w *Writer) Summary(sum float64, count uint64, labels ...Label) {
	if w.encoder != nil {
		w.add(&dto.Metric{Label: w.pairs(labels), Summary: &dto.Summary{
			SampleSum: proto.Float64(sum), SampleCount: proto.Uint64(count)}})
		return
	}
	w.begin(labels)
	w.sample("_sum", "", sum)
	w.sample("_count", "", float64(count))
	w.end()
}

// Histogram writes a histogram. It does not keep b and labels.
func (w *Writer) Histogram(b *Buckets, labels ...Label) {
	if w.encoder != nil {
		w.add(&dto.Metric{Label: w.pairs(labels), Histogram: histogram(b)})
		return
	}
	w.begin(labels)
	var total uint64
	w.setBounds(b.Bounds)
	for i, n := range b.Counts {
		total += n
		bound := "+Inf"
		if i < len(b.Bounds) {
			bound = w.boundTexts[i]
		}
		w.sample("_bucket", bound, float64(total))
	}
	w.sample("_sum", "", b.Sum)
	w.sample("_count", "", float64(total))
	w.end()
}

// begin begins the text of a metric: it writes the text about its family, if this is the first metric, and encodes the
// labels.
func (w *Writer) begin(labels []Label) {
	if !w.begun {
		w.begun = true
		w.text = append(w.text, "# HELP "+w.family.Name+" "+helpEscapes.Replace(w.family.Help)+"\n"...)
		w.text = append(w.text, "# TYPE "+w.family.Name+" "+kinds[w.family.Kind].text+"\n"...)
	}
	w.labels = appendLabels(w.labels[:0], labels)
	if len(labels) > 0 && w.commonText != "" {
		w.labels = append(w.labels, ',')
	}
	w.labels = append(w.labels, w.commonText...)
}

func appendLabels(to []byte, labels []Label) []byte {
	for i, l := range labels {
		if i > 0 {
			to = append(to, ',')
		}
		to = append(to, l.Name...)
		to = append(to, '=', '"')
		to = appendValue(to, l.Value)
		to = append(to, '"')
	}
	return to
}

// setBounds sets the texts of bounds. Most histograms have the same bounds as the one before.
func (w *Writer) setBounds(bounds []float64) {
	if slices.Equal(w.bounds, bounds) {
		return
	}
	w.bounds, w.boundTexts = append(w.bounds[:0], bounds...), w.boundTexts[:0]
	for _, bound := range bounds {
		w.boundTexts = append(w.boundTexts, string(appendNumber(nil, bound)))
	}
}

// sample appends one line. suffix follows the name of the family. bound is the value of the label le, or "" for a line
// without this label.
func (w *Writer) sample(suffix, bound string, value float64) {
	w.text = append(w.text, w.family.Name...)
	w.text = append(w.text, suffix...)
	if len(w.labels) > 0 || bound != "" {
		w.text = append(w.text, '{')
		w.text = append(w.text, w.labels...)
		if bound != "" {
			if len(w.labels) > 0 {
				w.text = append(w.text, ',')
			}
			w.text = append(w.text, `le="`...)
			w.text = append(w.text, bound...)
			w.text = append(w.text, '"')
		}
		w.text = append(w.text, '}')
	}
	w.text = append(w.text, ' ')
	w.text = appendNumber(w.text, value)
	w.text = append(w.text, '\n')
}

// end ends a metric.
func (w *Writer) end() {
	if len(w.text) >= pending {
		w.writeText()
	}
}

func (w *Writer) writeText() {
	if w.err == nil && len(w.text) > 0 {
		_, w.err = w.to.Write(w.text)
		w.rest()
	}
	w.text = w.text[:0]
}

// rest pauses if the last pause was long ago.
func (w *Writer) rest() {
	if time.Since(w.since) >= turn {
		if w.timer == nil {
			w.timer = time.NewTimer(pause)
		} else {
			w.timer.Reset(pause)
		}
		<-w.timer.C
		w.since = time.Now()
	}
}

// add adds a metric to the protobuf message, and writes the message if it is full.
func (w *Writer) add(m *dto.Metric) {
	if w.message == nil {
		name, help := w.family.Name, w.family.Help
		w.message = &dto.MetricFamily{Name: &name, Help: &help, Type: kinds[w.family.Kind].protobuf.Enum()}
	}
	if w.message.Metric = append(w.message.Metric, m); len(w.message.Metric) >= chunk {
		w.writeMessage()
	}
}

func (w *Writer) writeMessage() {
	if w.err == nil && w.message != nil {
		w.err = w.encoder.Encode(w.message)
		w.rest()
	}
	w.message = nil
}

// pairs returns labels and the labels of With.
func (w *Writer) pairs(labels []Label) []*dto.LabelPair {
	all := make([]*dto.LabelPair, 0, len(labels)+len(w.common))
	for _, some := range [][]Label{labels, w.common} {
		for i := range some {
			name, value := some[i].Name, strings.ToValidUTF8(some[i].Value, replacement)
			all = append(all, &dto.LabelPair{Name: &name, Value: &value})
		}
	}
	return all
}

// histogram adds the classic buckets to the native histogram of b, if there is one. Prometheus prefers the native
// histogram.
func histogram(b *Buckets) *dto.Histogram {
	h := cmp.Or(b.Native, &dto.Histogram{})
	var total uint64
	for i, n := range b.Counts {
		total += n
		if i < len(b.Bounds) {
			below, bound := total, b.Bounds[i]
			h.Bucket = append(h.Bucket, &dto.Bucket{CumulativeCount: &below, UpperBound: &bound})
		}
	}
	if b.Native == nil {
		sum := b.Sum
		h.SampleCount, h.SampleSum = &total, &sum
	}
	return h
}

// replacement stands for bytes that are not valid UTF-8. Prometheus rejects the whole response if it contains such
// bytes.
const replacement = "�"

var (
	helpEscapes  = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
	valueEscapes = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
)

// appendValue appends the value of a label, with the characters escaped that the text format reserves.
func appendValue(to []byte, value string) []byte {
	if isPlain(value) {
		return append(to, value...)
	}
	return append(to, valueEscapes.Replace(strings.ToValidUTF8(value, replacement))...)
}

// isPlain reports whether a value consists of ASCII characters that are not escaped.
func isPlain(value string) bool {
	for i := range len(value) {
		switch c := value[i]; {
		case c >= utf8.RuneSelf, c == '\\', c == '\n', c == '"':
			return false
		}
	}
	return true
}

func appendNumber(to []byte, value float64) []byte {
	switch {
	case math.IsInf(value, 1):
		return append(to, "+Inf"...)
	case math.IsInf(value, -1):
		return append(to, "-Inf"...)
	case value == math.Trunc(value) && math.Abs(value) < 1e6:
		return strconv.AppendInt(to, int64(value), 10)
	}
	return strconv.AppendFloat(to, value, 'g', -1, 64)
}
