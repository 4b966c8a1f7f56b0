package filter_test

import (
	"encoding/base64"
	"errors"
	"net/http"
	"testing"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/filter"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/ir"
)

// newBasicAuth returns a basic authentication filter with a bcrypt password, and valid credentials.
func newBasicAuth(t testing.TB) (f filter.Filter, credentials string) {
	t.Helper()
	shared, users := filter.NewShared(nil, nil), ir.Users{Secret: ir.Name{Namespace: "shop", Name: "users"}}
	shared.Users.Update(&document.Delta{Hosts: map[string]*document.Host{"": {Routes: []*document.Route{
		{Destination: document.Destination{Users: []ir.Users{users}}},
	}}}})
	shared.Users.SetSecret(users.Secret, map[string][]byte{
		"auth": []byte("alice:$2y$04$abcdefghijklmnopqrstuu/LVz6MZlItEy42I2juLihZ66HnQx/cy"),
	}, true)
	f, ok, err := filter.New("k8singress_basic_auth",
		[]byte(`{"users": {"secret": "shop/users"}, "realm": "Shop"}`), shared)
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	return f, base64.StdEncoding.EncodeToString([]byte("alice:open sesame"))
}

func TestGuardsAreRefused(t *testing.T) {
	for name, c := range map[string]struct{ handler, json string }{
		"no Secret":               {"k8singress_basic_auth", `{}`},
		"a quote in the realm":    {"k8singress_basic_auth", `{"users": {"secret": "a/b"}, "realm": "a\"b"}`},
		"a line in the realm":     {"k8singress_basic_auth", `{"users": {"secret": "a/b"}, "realm": "a\r\nb"}`},
		"no filters":              {"k8singress_any_of", `{}`},
		"no list of filters":      {"k8singress_any_of", `{"filters": 1}`},
		"a filter that is none":   {"k8singress_any_of", `{"filters": [{"handler": "static_response"}]}`},
		"a filter that is no map": {"k8singress_any_of", `{"filters": [1]}`},
		"a filter that is wrong":  {"k8singress_any_of", `{"filters": [{"handler": "k8singress_basic_auth"}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			if f, ok, err := filter.New(c.handler, []byte(c.json), filter.NewShared(nil, nil)); !ok || err == nil {
				t.Errorf("%v, %v, %v", f, ok, err)
			}
		})
	}
	if _, _, err := filter.New("k8singress_basic_auth", []byte(`{"users": {"secret": "a/b"}}`), nil); err == nil {
		t.Error("a filter outside of a chain that asks for passwords")
	}
}

// TestSeveralAuthorizations checks that a request with several Authorization fields is rejected, because the endpoint
// could use a different one.
func TestSeveralAuthorizations(t *testing.T) {
	f, credentials := newBasicAuth(t)
	x := &exchange.Exchange{Request: &message.Request{Fields: message.Fields{message.Authorization.Field("Basic " +
		credentials)}}}
	if responded, err := f.Apply(x); responded || err != nil {
		t.Fatal(responded, err)
	}
	x.Fields.Add(message.Authorization.Field("Basic x"))
	var failure *exchange.Failure
	if _, err := f.Apply(x); !errors.As(err, &failure) || failure.Status != http.StatusUnauthorized {
		t.Error(err)
	}
}

// BenchmarkBasicAuth measures the check of a password that was verified before.
func BenchmarkBasicAuth(b *testing.B) {
	f, credentials := newBasicAuth(b)
	x := &exchange.Exchange{Request: &message.Request{Fields: message.Fields{message.Authorization.Field("Basic " +
		credentials)}}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := f.Apply(x); err != nil {
			b.Fatal(err)
		}
	}
}
