package document_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/ir"
)

// sample returns a new value on each call, so that values cannot be equal just because they are the same pointer.
func sample() *document.Live {
	return &document.Live{
		Hosts: map[string]*document.Host{
			"a.example": {Routes: []*document.Route{{
				Type: "prefix", Path: "/",
				Destination: document.Destination{Chain: json.RawMessage(`[]`), Backend: "a/web/80"},
			}}},
			"": {},
		},
		Backends: map[string]*document.Backend{"a/web/80": {Endpoints: []string{"192.0.2.1:80"}}},
		Ports:    map[string]*document.Port{"tcp/5432": {Server: json.RawMessage(`{}`)}},
		Certificates: map[string]*ir.Certificate{"a.example": {Secret: ir.Name{Namespace: "a", Name: "tls"},
			Origin: ir.ParseRef("Ingress/a/web")}},
	}
}

func TestNothingChanges(t *testing.T) {
	for name, d := range map[string]*document.Delta{
		"equal": document.Diff(sample(), sample()), "nil": document.Diff(nil, nil),
		"empty":      document.Diff(nil, &document.Live{}),
		"empty maps": document.Diff(&document.Live{Hosts: map[string]*document.Host{}}, nil),
	} {
		if !d.Empty() {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

func TestDiff(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(*document.Live)
		want func(to *document.Live) *document.Delta
	}{
		"a route changes": {
			func(l *document.Live) { l.Hosts["a.example"].Routes[0].Chain = json.RawMessage(`[{}]`) },
			func(to *document.Live) *document.Delta {
				return &document.Delta{Hosts: map[string]*document.Host{"a.example": to.Hosts["a.example"]}}
			},
		},
		"a host goes and one comes": {
			func(l *document.Live) { delete(l.Hosts, ""); l.Hosts["b.example"] = &document.Host{} },
			func(*document.Live) *document.Delta {
				return &document.Delta{Hosts: map[string]*document.Host{"": nil, "b.example": {}}}
			},
		},
		"endpoints change": {
			func(l *document.Live) { l.Backends["a/web/80"].Endpoints = nil },
			func(*document.Live) *document.Delta {
				return &document.Delta{Backends: map[string]*document.Backend{"a/web/80": {}}}
			},
		},
		"a port goes": {
			func(l *document.Live) { l.Ports = nil },
			func(*document.Live) *document.Delta {
				return &document.Delta{Ports: map[string]*document.Port{"tcp/5432": nil}}
			},
		},
		"the origin of a certificate changes": {
			func(l *document.Live) { l.Certificates["a.example"].Origin.Name = "two" },
			func(to *document.Live) *document.Delta { return &document.Delta{Certificates: to.Certificates} },
		},
	} {
		t.Run(name, func(t *testing.T) {
			to := sample()
			c.edit(to)
			got := document.Diff(sample(), to)
			if got.Empty() {
				t.Error("the delta says that it is empty")
			}
			if d := cmp.Diff(c.want(to), got, cmpopts.EquateEmpty()); d != "" {
				t.Error(d)
			}
		})
	}
}
