package webhook

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/validation"

	"github.com/k8singress/k8singress/internal/model/jsonfilter"
)

// The limits of a request body. The API server accepts objects of 3 MiB, and etcd stores objects of 1.5 MiB by default.
// maxValues bounds the work for a body that consists of many small values: an object of 1.5 MiB with its previous
// version has fewer values, whatever it contains that an Ingress may contain. No field of an Ingress is nested deeper
// than maxDepth. The largest part of an Ingress is an annotation of 256 KiB, in which JSON may need 6 bytes for each.
const (
	maxBody   = 9 << 20
	maxValues = 300_000
	maxDepth  = 100
	maxPart   = 2 << 20
)

var limits = jsonfilter.Limits{Depth: maxDepth, Values: maxValues, Part: maxPart}

// decoder decodes an AdmissionReview while its body is read. Lists and annotations are decoded one by one, so that
// there can be a pause after each, and so that their text needs no memory.
type decoder struct {
	filter      *jsonfilter.Filter[*decoder]
	work        *work
	object, old parts
	// wrong is the first value with a wrong type. The other values are decoded nevertheless, as in encoding/json.
	wrong *json.UnmarshalTypeError
}

// parts are the parts of an Ingress that are decoded one by one. paths are the paths of the next rule, and hosts the
// hosts of the next element of tls.
type parts struct {
	annotations map[string]string
	// size is the size of the annotations in bytes.
	size  int
	rules []networkingv1.IngressRule
	paths []networkingv1.HTTPIngressPath
	tls   []networkingv1.IngressTLS
	hosts []string
}

type (
	shape  = jsonfilter.Shape[*decoder]
	fields = []jsonfilter.Field[*decoder]
)

var whole = &shape{}

// reviewShape has the fields of body.
var reviewShape = &shape{Fields: fields{
	{Name: "apiVersion", Shape: whole}, {Name: "kind", Shape: whole},
	{Name: "request", Shape: &shape{Fields: fields{
		{Name: "uid", Shape: whole}, {Name: "kind", Shape: whole}, {Name: "subResource", Shape: whole},
		{Name: "operation", Shape: whole},
		{Name: "object", Shape: objectShape("object", func(d *decoder) *parts { return &d.object })},
		{Name: "oldObject", Shape: objectShape("oldObject", func(d *decoder) *parts { return &d.old })},
	}}},
}}

// objectShape returns the shape of an object. of returns where its parts are collected.
func objectShape(name string, of func(*decoder) *parts) *shape {
	metadata := &shape{Fields: fields{
		{Name: "name", Shape: whole}, {Name: "namespace", Shape: whole}, {Name: "creationTimestamp", Shape: whole},
		{Name: "deletionTimestamp", Shape: whole},
		{Name: "annotations", Shape: &shape{Members: &shape{
			Take: taking(name+".metadata.annotations", of, (*parts).annotate)}}},
	}}
	paths := &shape{Take: taking(name+".spec.rules.http.paths", of, (*parts).addPath)}
	rules := &shape{Take: taking(name+".spec.rules", of, (*parts).addRule), Fields: fields{
		{Name: "host", Shape: whole},
		{Name: "http", Shape: &shape{Fields: fields{{Name: "paths", Shape: &shape{Elements: paths}}}}},
	}}
	hosts := &shape{Take: taking(name+".spec.tls.hosts", of, (*parts).addHost)}
	tls := &shape{Take: taking(name+".spec.tls", of, (*parts).addTLS), Fields: fields{
		{Name: "hosts", Shape: &shape{Elements: hosts}}, {Name: "secretName", Shape: whole},
	}}
	return &shape{Fields: fields{{Name: "metadata", Shape: metadata}, {Name: "spec", Shape: &shape{Fields: fields{
		{Name: "ingressClassName", Shape: whole}, {Name: "defaultBackend", Shape: whole},
		{Name: "rules", Shape: &shape{Elements: rules}}, {Name: "tls", Shape: &shape{Elements: tls}},
	}}}}}
}

// taking returns a function that decodes a part and adds it to the parts of an object. name is the name of the field in
// error messages.
func taking[V any](name string, of func(*decoder) *parts, add func(*parts, V) error) func(*decoder, []byte) error {
	return func(d *decoder, text []byte) error {
		var part V
		if err := d.unmarshal(text, &part, name); err != nil {
			return err
		}
		if err := add(of(d), part); err != nil {
			return err
		}
		return d.work.rest()
	}
}

// annotate adds an annotation. The API server never stores an object with larger annotations, and translating it would
// take more than maxTime.
func (p *parts) annotate(annotation map[string]string) error {
	for name, value := range annotation {
		p.size += len(name) + len(value)
	}
	if p.size > validation.TotalAnnotationSizeLimitB {
		return bad("the Ingress cannot be stored: its annotations have more than %d bytes",
			validation.TotalAnnotationSizeLimitB)
	}
	if p.annotations == nil {
		p.annotations = annotation
	}
	maps.Copy(p.annotations, annotation)
	return nil
}

func (p *parts) addPath(path networkingv1.HTTPIngressPath) error {
	p.paths = append(p.paths, path)
	return nil
}

func (p *parts) addRule(rule networkingv1.IngressRule) error {
	if rule.HTTP != nil && len(p.paths) > 0 {
		rule.HTTP.Paths = p.paths
	}
	p.rules, p.paths = append(p.rules, rule), nil
	return nil
}

func (p *parts) addHost(host string) error {
	p.hosts = append(p.hosts, host)
	return nil
}

func (p *parts) addTLS(tls networkingv1.IngressTLS) error {
	if len(p.hosts) > 0 {
		tls.Hosts = p.hosts
	}
	p.tls, p.hosts = append(p.tls, tls), nil
	return nil
}

// complete adds the parts to the rest of an object, in which lists and annotations are empty.
func (p *parts) complete(o *object) {
	if o == nil {
		return
	}
	if len(p.annotations) > 0 {
		o.Metadata.Annotations = p.annotations
	}
	if len(p.rules) > 0 {
		o.Spec.Rules = p.rules
	}
	if len(p.tls) > 0 {
		o.Spec.TLS = p.tls
	}
}

func newDecoder(w *work) *decoder {
	d := &decoder{work: w}
	d.filter = jsonfilter.New(reviewShape, d, limits)
	return d
}

// write reads the next piece of the body.
func (d *decoder) write(piece []byte) error {
	_, err := d.filter.Write(piece)
	return invalid(err)
}

// end returns the request of the review after the whole body was read.
func (d *decoder) end() (*request, error) {
	rest, err := d.filter.End()
	if err != nil {
		return nil, invalid(err)
	}
	b := &body{}
	if err := d.unmarshal(rest, b, ""); err != nil {
		return nil, err
	}
	if b.Request != nil {
		d.object.complete(b.Request.Object)
		d.old.complete(b.Request.OldObject)
	}
	return b.review(d.wrong)
}

// unmarshal decodes the text of a field.
func (d *decoder) unmarshal(text []byte, to any, field string) error {
	err := json.Unmarshal(text, to)
	wrong := (*json.UnmarshalTypeError)(nil)
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &wrong):
		return invalid(err)
	}
	if d.wrong == nil {
		wrong.Field = strings.Trim(field+"."+wrong.Field, ".")
		d.wrong = wrong
	}
	return nil
}

// invalid returns the error for the author of a body that cannot be decoded. It returns other errors unchanged.
func invalid(err error) error {
	var field *jsonfilter.FieldError
	switch {
	case err == nil, errors.As(err, new(*refused)):
		return err
	case errors.Is(err, jsonfilter.ErrDepth):
		return bad("the AdmissionReview is nested deeper than %d levels", maxDepth)
	case errors.Is(err, jsonfilter.ErrValues):
		return &refused{http.StatusRequestEntityTooLarge, fmt.Sprintf(
			"the AdmissionReview has more than %d values: split the Ingress", maxValues)}
	case errors.Is(err, jsonfilter.ErrPart):
		return &refused{http.StatusRequestEntityTooLarge, fmt.Sprintf(
			"a value in the AdmissionReview is larger than %d MiB: shorten it", maxPart>>20)}
	case errors.As(err, &field):
		return bad("the AdmissionReview is ambiguous: %v", field)
	default:
		return bad("the body is not JSON: %v", err)
	}
}
