package filter_test

import (
	"encoding/base64"
	"testing"

	"github.com/k8singress/k8singress/internal/http/filter"
	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/tests/exchangetest"
)

// asAlice is the field with the user and the password of newEnvironment. wrongly has another password.
var (
	asAlice = "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte("alice:one"))
	wrongly = "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte("alice:two"))
)

const challenged = `401 | WWW-Authenticate: Basic realm="Shop, members only"`

var basicAuthCases = []filterCase{
	{
		name: "users", settings: `{"users": {"secret": "shop/users"}, "realm": "Shop, members only"}`,
		requests: []requestCase{
			passes("GET http://shop.example/ | " + asAlice),
			// The password is known now.
			passes("GET http://shop.example/ | " + asAlice),
			passes("GET http://shop.example/ | authorization: bASIC  YWxpY2U6b25l"),
			gets("GET http://shop.example/", challenged),
			gets("GET http://shop.example/ | "+wrongly, challenged),
			gets("GET http://shop.example/ | Authorization: Basic Ym9iOm9uZQ==", challenged),
			gets("GET http://shop.example/ | Authorization: Basic ?", challenged),
			gets("GET http://shop.example/ | Authorization: Basic", challenged),
			gets("GET http://shop.example/ | Authorization: Bearer YWxpY2U6b25l", challenged),
			// The endpoint could use another one of two fields.
			gets("GET http://shop.example/ | "+asAlice+" | Authorization: Basic x", challenged),
			gets("GET http://shop.example/ | "+asAlice+" | "+asAlice, challenged),
		},
	},
	{name: "a missing Secret", settings: `{"users": {"secret": "shop/missing"}}`, requests: []requestCase{
		gets("GET http://shop.example/", "503"),
		gets("GET http://shop.example/ | "+asAlice, "503"),
	}},
	{
		name: "a Secret of another configuration", settings: `{"users": {"secret": "shop/unknown"}}`,
		requests: []requestCase{
			gets("GET http://shop.example/", "503"),
			gets("GET http://shop.example/ | "+asAlice, "503"),
		},
	},
	rejected("no Secret", `{}`, "no Secret with users"),
	rejected("a quote in the realm", `{"users": {"secret": "a/b"}, "realm": "a\"b"}`, "the realm"),
	rejected("a backslash in the realm", `{"users": {"secret": "a/b"}, "realm": "a\\b"}`, "the realm"),
	rejected("a line in the realm", `{"users": {"secret": "a/b"}, "realm": "a\r\nb"}`, "the realm"),
}

// BenchmarkBasicAuth measures the check of a password that was verified before.
func BenchmarkBasicAuth(b *testing.B) {
	shared, users := filter.NewShared(nil, nil), ir.Users{Secret: ir.Name{Namespace: "shop", Name: "users"}}
	shared.Users.Update(&document.Delta{Hosts: map[string]*document.Host{"": {Routes: []*document.Route{
		{Destination: document.Destination{Users: []ir.Users{users}}},
	}}}})
	shared.Users.SetSecret(users.Secret, map[string][]byte{
		"auth": []byte("alice:$2y$04$abcdefghijklmnopqrstuu/LVz6MZlItEy42I2juLihZ66HnQx/cy"),
	}, true)
	f, _, err := filter.New("k8singress_basic_auth", []byte(`{"users": {"secret": "shop/users"}}`), shared)
	if err != nil {
		b.Fatal(err)
	}
	x, _ := exchangetest.New(b, "GET http://shop.example/ | Authorization: Basic "+
		base64.StdEncoding.EncodeToString([]byte("alice:open sesame")))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := f.Apply(x); err != nil {
			b.Fatal(err)
		}
	}
}
