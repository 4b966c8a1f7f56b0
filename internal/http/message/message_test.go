package message_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/http/message"
)

// TestJoined checks that cookies are joined like the pairs in a Cookie field, and other fields like lists.
func TestJoined(t *testing.T) {
	fields := message.Fields{message.NewField("Cookie", "a=1"), message.NewField("X-User", "alice"),
		message.NewField("cookie", "b=2; c=3"), message.NewField("x-user", "bob")}
	for name, want := range map[string]string{"cookie": "a=1; b=2; c=3", "X-User": "alice, bob"} {
		if got, ok := fields.Joined(name); got != want || !ok {
			t.Errorf("%s: %q, %t", name, got, ok)
		}
	}
	if got := fields.JoinedKind(message.Cookie); got != "a=1; b=2; c=3" {
		t.Errorf("the cookies are %q", got)
	}
}

// TestVariableOfFields checks which fields a variable such as $http_x_user stands for. The values are as in nginx.
func TestVariableOfFields(t *testing.T) {
	fields := message.Fields{message.NewField("X-User", "alice"), message.NewField("cookie", "a=1"),
		message.NewField("x_user", "bob"), message.NewField("XxUser", "carol"), message.NewField("X-User-2", "dave"),
		message.NewField("Cookie", "b=2"), message.NewField("X.User", "erin"), message.NewField("User-Agent", "f")}
	for name, want := range map[string]string{"x_user": "alice, bob", "X_USER": "alice, bob", "cookie": "a=1; b=2",
		"xxuser": "carol", "x_user_2": "dave", "user_agent": "f", "x_user_": "", "x": "", "": ""} {
		if got := fields.Variable(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// TestKinds checks that each kind is found by its name in any case, and by no other name.
func TestKinds(t *testing.T) {
	for k := message.Other; k < 255; k++ {
		if k >= message.XAccelBuffering+1 {
			break
		}
		name := k.Name()
		if name == "" {
			continue
		}
		for _, spelt := range []string{name, strings.ToLower(name), strings.ToUpper(name),
			http.CanonicalHeaderKey(name)} {
			if got := message.KindOf(spelt); got != k {
				t.Errorf("%s is of kind %d, want %d", spelt, got, k)
			}
		}
		if got := message.KindOf(name + "x"); got == k {
			t.Errorf("%sx is of the kind of %s", name, name)
		}
	}
	for name, want := range map[string]message.Kind{
		"X-Custom": message.Other, "x1": message.Other, "ssl-client-verify": message.SSLClient,
		"SSL_CLIENT_CERT": message.Invalid,
		"Ssl-Client-Dn":   message.SSLClient, "ssl-clientx": message.Other,
		"X_Real_IP": message.Invalid, "x.forwarded_for": message.Invalid, "Transfer-Encoding'": message.Invalid,
		"_Host":    message.Invalid,
		"X_Custom": message.Underscored, "ssl_clien": message.Underscored, "_": message.Underscored, "a.b": message.Odd,
		"a'b_c":                         message.Odd,
		strings.Repeat("a", 1000) + "_": message.Underscored,
		"SSL-Client-Subject_Dn-And-More-Than-The-Longest": message.Invalid,
	} {
		if got := message.KindOf(name); got != want {
			t.Errorf("%s is of kind %d, want %d", name, got, want)
		}
	}
}

// TestTargets checks that targets are parsed like in net/http, and are sent unchanged.
func TestTargets(t *testing.T) {
	for _, target := range []string{
		"/", "/a/b?x=1", "/a%2Fb", "/a b", "/%zz", "/ä", "/a|b", "/?", "/?a=b?c", "/%61", "//x//y", "http://h/x?y",
		"http://h", "http://h?x",
		"https://h:1/", "/a;b,c!d*e(f)'", "/a#b", "/a\"b", "/%", "/a+b", "/[x]", "/%2e%2e/",
	} {
		if strings.ContainsAny(target, " ") {
			continue
		}
		var r message.Request
		err := r.SetTarget(target)
		want, wantErr := http.ReadRequest(reader("GET " + target + " HTTP/1.1\r\nHost: h\r\n\r\n"))
		if (err == nil) != (wantErr == nil) {
			t.Errorf("%s: %v, and net/http says %v", target, err, wantErr)
			continue
		}
		if err != nil {
			continue
		}
		wantPath := want.URL.Path
		if wantPath == "" {
			wantPath = "/"
		}
		if r.Path != wantPath || r.OutTarget() != want.URL.RequestURI() || r.Query != want.URL.RawQuery ||
			want.URL.Host != "" && r.Host != want.Host {
			t.Errorf("%s: %q, %q, %q at %q; net/http has %q, %q at %q", target, r.Path, r.OutTarget(), r.Query, r.Host,
				want.URL.Path, want.URL.RequestURI(), want.Host)
		}
	}
	for _, target := range []string{"*", "x:admin", "h:80", "http:admin", "", "http://", "http://u@h/"} {
		if err := new(message.Request).SetTarget(target); err == nil {
			t.Errorf("%q is no error", target)
		}
	}
}

// TestCookies checks that cookies are parsed like in net/http.
func TestCookies(t *testing.T) {
	for _, lines := range [][]string{
		{"a=1"}, {"b=2; a=1"}, {"a=1; a=2"}, {"b=2", "a=1"}, {`a="x"`}, {`a=x"y; a=2`}, {"a"}, {"a="},
		{" a = 1"}, {"A=1"}, {"a=ä; a=1"}, {";;a=1;"}, {"a=x,y"},
	} {
		from := httptest.NewRequest(http.MethodGet, "/", nil)
		from.Header["Cookie"] = lines
		want, wantErr := from.Cookie("a")
		var r message.Request
		r.FromHTTP(from)
		got, ok := r.Cookie("a")
		if ok != (wantErr == nil) || ok && got != want.Value {
			t.Errorf("%q: %q, %v; net/http has %v, %v", lines, got, ok, want, wantErr)
		}
	}
}

// TestCookiesLikeNginx checks the values of nginx's variables for cookies.
func TestCookiesLikeNginx(t *testing.T) {
	for line, want := range map[string]string{
		"a=1": "1", "b=2; A=1": "1", "a=1; a=2": "1", `a="x y"`: `"x y"`, `a=x"y; a=2`: `x"y`, "a": "", "a=": "",
		"a = 1": "1", "\ta=1": "", "a=ä": "ä", ";;a=1;": "1", "a=x,y": "x,y", "b=x,a=y": "y", "ab=1; a=2": "2",
		"b": "", "": "",
	} {
		r := message.Request{
			Fields: message.Fields{message.NewField("Cookie", "c=3"), message.NewField("Cookie", line)},
		}
		if got := r.CookieLikeNginx("a"); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}

// TestFieldsChange checks the order of changes, and that they ignore the case of names.
func TestFieldsChange(t *testing.T) {
	fields := message.Fields{
		message.NewField("a", "1"), message.NewField("SERVER", "x"), message.NewField("A", "2"),
		message.NewField("b", "3"),
	}
	changes := message.Changes{
		Remove: []message.Field{message.NewField("B", "")},
		Set:    []message.Field{message.NewField("A", "new"), message.Server.Field("y")},
		Add:    []message.Field{message.NewField("a", "more")},
	}
	changes.Apply(&fields)
	var all []string
	for _, f := range fields {
		all = append(all, f.Name+"="+f.Value)
	}
	if got := strings.Join(all, " "); got != "A=new Server=y a=more" {
		t.Error(got)
	}
}

// TestNamesOfOneKind checks that a change to a field leaves fields of the same kind with other names unchanged.
func TestNamesOfOneKind(t *testing.T) {
	for _, names := range [][2]string{{"ssl-client-verify", "ssl-client-cert"}, {"a_b", "c_d"}, {"x-a", "x-b"}} {
		fields := message.Fields{message.NewField(names[0], "1"), message.NewField(names[1], "2")}
		fields.Set(message.NewField(names[1], "3"))
		if value, _ := fields.Joined(names[0]); value != "1" || len(fields) != 2 || fields[1].Value != "3" {
			t.Errorf("%q", fields)
		}
		fields.Remove(message.KindOf(names[0]), strings.ToUpper(names[0]))
		if len(fields) != 1 || fields[0].Name != names[1] {
			t.Errorf("%q", fields)
		}
	}
}

// TestThereAndBack checks that a request stays the same if it is converted to net/http and back.
func TestThereAndBack(t *testing.T) {
	from := httptest.NewRequest(http.MethodPost, "/a%2Fb/c?x=1", strings.NewReader("body"))
	from.Header = http.Header{"Accept": {"a", "b"}, "X_y": {"dropped"}, "X-Y": {"kept"}}
	var one, two message.Request
	one.FromHTTP(from)
	two.FromHTTP(one.ToHTTP())
	if one.Fields.JoinedKind(message.Accept) != "a, b" || one.Fields.Has(message.Underscored) || len(one.Fields) != 3 {
		t.Errorf("%+v", one.Fields)
	}
	if two.OutTarget() != "/a%2Fb/c?x=1" || two.Path != "/a/b/c" || two.Length != 4 || two.Host != one.Host ||
		len(two.Fields) != 3 ||
		two.Conn.RemoteIP != "192.0.2.1" {
		t.Errorf("%+v", two)
	}
}

// TestConnectionNamesFields checks that fields named in Connection are removed, except fields that identify the client.
func TestConnectionNamesFields(t *testing.T) {
	from := httptest.NewRequest(http.MethodGet, "/", nil)
	from.Header = http.Header{
		"Connection": {"close, x-one", "X-Forwarded-For,Authorization, X-Two"}, "X-One": {"1"}, "X-Two": {"2"},
		"X-Three":         {"3"},
		"X-Forwarded-For": {"4"}, "Authorization": {"5"},
	}
	var r message.Request
	r.FromHTTP(from)
	var names []string
	for _, f := range r.Fields {
		names = append(names, f.Name)
	}
	slices.Sort(names)
	if got := strings.Join(names, " "); got != "Authorization Connection Connection X-Forwarded-For X-Three" {
		t.Error(got)
	}
}

// TestKeptStrings checks that kept strings do not change later, whether or not they fit into the memory of the head.
func TestKeptStrings(t *testing.T) {
	var r message.Request
	buffer := []byte("GET / HTTP/1.1\r\n\r\n")
	all := []string{r.SetHead(buffer)}
	want := []string{string(buffer)}
	for i := range 20 {
		copy(buffer, fmt.Sprintf("%016d", i))
		all, want = append(all, r.Keep(buffer[:16])), append(want, fmt.Sprintf("%016d", i))
	}
	if !slices.Equal(all, want) {
		t.Errorf("they are %q, want %q", all, want)
	}
	if got := new(message.Request).Keep(buffer); got != string(buffer) {
		t.Errorf("without a head it is %q", got)
	}
}
