// Package exposition writes metrics in the formats that Prometheus reads. In contrast to a prometheus.Collector, a
// Writer never holds all metrics: it writes while its caller walks over the values.
package exposition

import (
	"cmp"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
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
	// pending is the maximum number of bytes of text that are kept before they are written.
	pending = 32 << 10
	// chunk is the maximum number of metrics in one message of the protobuf format. Prometheus accepts several messages
	// for one name.
	chunk = 64
)

// Writer writes families of metrics one after the other. All metrics of a family must be written before the next
// family begins. After the first error of the underlying writer, its methods do nothing.
type Writer struct {
	to     io.Writer
	text   []byte
	labels []byte
	family Family
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
	w := &Writer{to: to}
	if format.FormatType() != expfmt.TypeTextPlain {
		w.encoder = expfmt.NewEncoder(to, format)
	}
	return w
}

// Family begins a family.
func (w *Writer) Family(f Family) {
	w.writeMessage()
	w.family, w.begun = f, false
}

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
		m := &dto.Metric{Label: pairs(labels)}
		if w.family.Kind == Counter {
			m.Counter = &dto.Counter{Value: &value}
		} else {
			m.Gauge = &dto.Gauge{Value: &value}
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
		w.add(&dto.Metric{Label: pairs(labels), Summary: &dto.Summary{SampleSum: &sum, SampleCount: &count}})
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
		w.add(&dto.Metric{Label: pairs(labels), Histogram: histogram(b)})
		return
	}
	w.begin(labels)
	var total uint64
	for i, n := range b.Counts {
		total += n
		bound := "+Inf"
		if i < len(b.Bounds) {
			bound = number(b.Bounds[i])
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
	w.labels = w.labels[:0]
	for i, l := range labels {
		if i > 0 {
			w.labels = append(w.labels, ',')
		}
		w.labels = append(w.labels, l.Name...)
		w.labels = append(w.labels, '=', '"')
		w.labels = appendValue(w.labels, l.Value)
		w.labels = append(w.labels, '"')
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
	}
	w.text = w.text[:0]
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
	}
	w.message = nil
}

func pairs(labels []Label) []*dto.LabelPair {
	all := make([]*dto.LabelPair, len(labels))
	for i := range labels {
		name, value := labels[i].Name, strings.ToValidUTF8(labels[i].Value, replacement)
		all[i] = &dto.LabelPair{Name: &name, Value: &value}
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
	if !utf8.ValidString(value) {
		value = strings.ToValidUTF8(value, replacement)
	}
	if strings.ContainsAny(value, "\\\n\"") {
		value = valueEscapes.Replace(value)
	}
	return append(to, value...)
}

func number(value float64) string { return string(appendNumber(nil, value)) }

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
