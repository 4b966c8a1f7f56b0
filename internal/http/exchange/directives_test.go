package exchange_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/pattern"
	"github.com/k8singress/k8singress/internal/tests/exchangetest"
)

// directives compiles the directives of a program.
func directives(t *testing.T, of ir.Directives) *exchange.Directives {
	t.Helper()
	d, err := exchange.NewDirectives(&of)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestEndpointHeaders checks which header fields an endpoint gets from a program.
func TestEndpointHeaders(t *testing.T) {
	x, _ := exchangetest.New(t, "GET http://shop.example/a%0Ab?q=1 | X-User: mallory")
	x.UseDirectives(directives(t, ir.Directives{EndpointHeaders: []ir.Header{
		header("x-real-ip: $host"), header("X-User: $user"), header("X-Empty: $arg_none"), header("X-Line: $uri"),
		header("X-New:  $arg_q "), {Name: "host", Value: "$arg_q.example"},
		{Name: "X-Text", Value: " a\tb\t"}, {Name: "X-Control", Value: "a\x01"}, {Name: "X-None"},
	}}))
	x.UseDirectives(directives(t, ir.Directives{EndpointHeaders: []ir.Header{header("X-New: $http_x_user")}}))
	x.SetVariable("user", "alice")
	fields := exchangetest.Fields("X-Real-IP: 1 | X-User: 2 | X-Empty: 3 | X-Line: 4 | X-Other: 5" +
		" | X-Text: 6 | X-Control: 7 | X-None: 8")
	x.AddForEndpoint(&fields)
	want := "x-real-ip: shop.example | X-User: alice | X-Other: 5 | X-Text: a\tb | X-New: mallory"
	if got := exchangetest.Text(fields); got != want {
		t.Errorf("the endpoint gets %q, want %q", got, want)
	}
	if host := x.HostForEndpoint(); host != "1.example" {
		t.Errorf("the host is %q", host)
	}
	for name, want := range map[string]bool{"X-Empty": true, "X-New": true, "Host": false, "X-Other": false} {
		if got := x.SendsToEndpoint(func(own string) bool { return own == name }); got != want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestTrailersOfTheRequest checks that a client cannot send a field as a trailer that a program sets or removes.
func TestTrailersOfTheRequest(t *testing.T) {
	x, _ := exchangetest.New(t, "POST http://shop.example/")
	x.Trailers = func() message.Fields {
		return exchangetest.Fields("x-user: mallory | X-Group: root | X-Auth-Role: root | X-Checksum: 1")
	}
	directives(t, ir.Directives{InputHeaders: []ir.MoreHeaders{
		{Set: []ir.Header{{Name: "X-User"}}}, {Clear: []string{"X-Group", "X-Auth-*"}},
	}}).ChangeRequest(x)
	if got := exchangetest.Text(x.Trailers()); got != "X-Checksum: 1" {
		t.Errorf("the trailers are %q", got)
	}
}

// TestHiddenByPrograms checks which header fields of an endpoint's response reach the client.
func TestHiddenByPrograms(t *testing.T) {
	const response = "Server: a | X-Powered-By: b | ETag: c | X-Hidden: d"
	for name, c := range map[string]struct {
		of            ir.Directives
		backendServer bool
		want          string
	}{
		"nothing": {ir.Directives{}, false, "X-Powered-By: b | ETag: c"},
		"hide":    {ir.Directives{Hide: []string{"etag", "server"}}, true, "X-Powered-By: b"},
		"pass":    {ir.Directives{Pass: []string{"server", "X-Hidden"}}, false, response},
		"hide and pass": {ir.Directives{Hide: []string{"ETag"}, Pass: []string{"etag"}}, false,
			"X-Powered-By: b | ETag: c"},
		"pass something": {ir.Directives{Pass: []string{"X-None"}}, false, "X-Powered-By: b | ETag: c"},
	} {
		x, _ := exchangetest.New(t, "GET http://shop.example/")
		x.Headers, _ = exchange.NewHeaders(&ir.Headers{Hidden: []string{"X-Hidden"}}, false)
		x.Global.BackendServer = c.backendServer
		x.UseDirectives(directives(t, c.of))
		fields := exchangetest.Fields(response)
		if x.Hide(&fields); exchangetest.Text(fields) != c.want {
			t.Errorf("%s: %q, want %q", name, exchangetest.Text(fields), c.want)
		}
	}
}

// TestCookieFlags checks the flags of cookies as nginx sets them, and which of several programs counts.
func TestCookieFlags(t *testing.T) {
	of := func(all ...ir.CookieFlags) ir.Directives { return ir.Directives{CookieFlags: all} }
	one := func(cookie string, flags ...string) ir.CookieFlags {
		return ir.CookieFlags{Cookie: cookie, Flags: flags}
	}
	for _, c := range []struct {
		programs       []ir.Directives
		cookies, wants string
	}{
		{nil, "a=1;Secure", "a=1;Secure"},
		{[]ir.Directives{of(one("A", "HttpOnly", "secure", "samesite=NONE"))}, "a=1; Path=/ | b=1",
			"a=1; Path=/; Secure; HttpOnly; SameSite=None | b=1"},
		{[]ir.Directives{of(one("a"), one("~", "nosecure", "nohttponly", "nosamesite"))},
			"a=1;;  Secure | AB=1; SECURE; HttpOnly=; samesite=x; Path=/ | novalue; Secure",
			"a=1;;  Secure | AB=1; Path=/ | novalue; Secure"},
		{[]ir.Directives{of(one("~^s", "samesite=strict", "bogus")), {}}, "Sid=a=b; samesite | as=1",
			"Sid=a=b; SameSite=Strict | as=1"},
		{[]ir.Directives{of(one("~", "secure")), of(one("$arg_c", "$arg_f"))}, "a=1 | b=1", "a=1; HttpOnly | b=1"},
		{[]ir.Directives{of(one("a", "$arg_nosuch"))}, "a=1;Path=/", "a=1;Path=/"},
		{[]ir.Directives{of(one("~", "secure")), {CookieFlags: []ir.CookieFlags{}}}, "a=1", "a=1"},
		{[]ir.Directives{of(one("~(x|y|z){280}q", "secure"))},
			strings.Repeat("xyz", 1000) + "=1; Path=/ | a=1", "a=1"},
	} {
		x, _ := exchangetest.New(t, "GET http://shop.example/?c=a&f=httponly")
		for _, program := range c.programs {
			// The JSON configuration must keep an empty list.
			var decoded ir.Directives
			text, err := json.Marshal(program)
			if err == nil {
				err = json.Unmarshal(text, &decoded)
			}
			if err != nil {
				t.Fatal(err)
			}
			x.UseDirectives(directives(t, decoded))
		}
		var fields message.Fields
		for cookie := range strings.SplitSeq(c.cookies, " | ") {
			fields.Add(message.SetCookie.Field(cookie))
		}
		x.FlagCookies(&fields)
		var got []string
		for _, f := range fields {
			got = append(got, f.Value)
		}
		if got := strings.Join(got, " | "); got != c.wants {
			t.Errorf("%+v: %s becomes %s\nwant %s", c.programs, c.cookies[:min(99, len(c.cookies))], got, c.wants)
		}
	}
}

// TestVariablesOfTheResponse checks the variables that stand for the response of the endpoint, and for the response to
// the client so far.
func TestVariablesOfTheResponse(t *testing.T) {
	x, response := exchangetest.New(t, "GET http://shop.example/")
	x.Backend = newBackend(&ir.LoadBalancing{}, "a:1")
	x.UseDirectives(directives(t, ir.Directives{AddHeaders: []ir.AddedHeader{
		{Name: "A", Value: "$upstream_http_x_user,$upstream_cookie_ID,$upstream_status,$upstream_addr,$status"},
		{Name: "B", Value: "$sent_http_x_user,$sent_http_a,$sent_http_content_length"},
	}, Hide: []string{"X-User"}}))
	x.Next()
	x.SetResponseStatus(200)
	head := exchangetest.Response(t, "200 | X-User: alice | x-user: bob | Set-Cookie: a=b | Set-Cookie: id = 7; Path=/")
	head.Length = -1
	x.Hide(&head.Fields)
	if err := x.Head(head); err != nil {
		t.Fatal(err)
	}
	want := "200 | Set-Cookie: a=b | Set-Cookie: id = 7; Path=/ | A: alice, bob,7,200,a:1,200" +
		" | B: ,alice, bob,7,200,a:1,200,"
	if got := response.String(); got != want {
		t.Errorf("the client gets %q, want %q", got, want)
	}
}

// TestAuthVariables checks the variables that a program derives from the response of external authentication. Clients
// cannot set them.
func TestAuthVariables(t *testing.T) {
	x, _ := exchangetest.New(t, "GET http://shop.example/?user=mallory | User: mallory | Cookie: user=mallory")
	x.UseDirectives(directives(t, ir.Directives{AuthVariables: []ir.SetVariable{
		{Name: "user", Value: "$upstream_http_x_user@$host"}, {Name: "session", Value: "$upstream_cookie_session"},
		{Name: "code", Value: "$upstream_status"}, {Name: "both", Value: "$user$code"},
	}}))
	if user := x.Variable("user"); user != "" {
		t.Errorf("before authentication the user is %q", user)
	}
	x.SetAuthVariables(200, exchangetest.Fields("X-User: alice | Set-Cookie: session=1"))
	for name, want := range map[string]string{"user": "alice@shop.example", "session": "1", "code": "200",
		"both": "alice@shop.example200", "upstream_http_x_user": "", "upstream_status": ""} {
		if got := x.Variable(name); got != want {
			t.Errorf("$%s is %q, want %q", name, got, want)
		}
	}
}

// TestProgramVariables checks the variables and groups that programs set, and that a variable of nginx keeps its value.
func TestProgramVariables(t *testing.T) {
	x, _ := exchangetest.New(t, "GET http://shop.example/?q=1")
	p, err := pattern.Compile(`(?<host>a)(?<name>b)?(c)`)
	if err != nil {
		t.Fatal(err)
	}
	x.SetVariable("a", "1")
	x.SetVariable("a", "2")
	x.SetGroups("xacx", p.Submatch("xacx"), p.GroupNames())
	x.SetVariable("args", "a b")
	for name, want := range map[string]string{"a": "2", "host": "shop.example", "name": "", "1": "a", "2": "", "3": "c",
		"4": "", "0": "", "args": "a%20b", "b": ""} {
		if got := x.Variable(name); got != want {
			t.Errorf("$%s is %q, want %q", name, got, want)
		}
	}
}

// TestDirectivesAroundHandlers checks that the response of a Caddy handler gets the changes of a program before it
// once, and that an error of the handler gets them, too.
func TestDirectivesAroundHandlers(t *testing.T) {
	x, response := exchangetest.New(t, "GET http://shop.example/")
	x.UseDirectives(directives(t, ir.Directives{
		AddHeaders:      []ir.AddedHeader{{Name: "A", Value: "$status", Always: true}},
		EndpointHeaders: []ir.Header{header("B: b")},
	}))
	head, giveBack := x.TakeChanges()
	if refusal := exchangetest.Text(x.Refusal(500).Fields); refusal != "" {
		t.Errorf("inside of the handler, a failure has the fields %q", refusal)
	}
	fields := message.Fields{}
	if x.AddForEndpoint(&fields); exchangetest.Text(fields) != "B: b" {
		t.Errorf("inside of the handler, the endpoint gets %q", exchangetest.Text(fields))
	}
	if err := head(exchangetest.Response(t, "200")); err != nil || response.String() != "200 | A: 200" {
		t.Errorf("the client gets %q, %v", response, err)
	}
	giveBack()
	if refusal := exchangetest.Text(x.Refusal(502).Fields); refusal != "A: 502" {
		t.Errorf("behind the handler, a failure has the fields %q", refusal)
	}
}

// TestDirectivesOfErrorPages checks that an error page gets the changes to responses, and the backend of error pages no
// header fields of the program.
func TestDirectivesOfErrorPages(t *testing.T) {
	x, response := exchangetest.New(t, "GET http://shop.example/")
	x.UseDirectives(directives(t, ir.Directives{EndpointHeaders: []ir.Header{header("B: b")},
		MoreHeaders: []ir.MoreHeaders{{Set: []ir.Header{header("A: $a")}}}}))
	x.SetVariable("a", "1")
	page := x.ErrorPage(&exchange.Page{Status: 404, KeepStatus: true})
	fields := message.Fields{}
	if page.AddForEndpoint(&fields); len(fields) != 0 {
		t.Errorf("the backend of error pages gets %q", exchangetest.Text(fields))
	}
	if err := page.Head(exchangetest.Response(t, "200")); err != nil || response.String() != "404 | A: 1" {
		t.Errorf("the client gets %q, %v", response, err)
	}
}

// TestInvalidDirectives checks that names which would change the connection are rejected.
func TestInvalidDirectives(t *testing.T) {
	for _, name := range []string{"", "a b", "a:", "a\r\nb", "Connection", "Content-Length", "transfer-encoding",
		"TE", "CDN-Loop"} {
		for _, of := range []ir.Directives{
			{EndpointHeaders: []ir.Header{{Name: name}}}, {AddHeaders: []ir.AddedHeader{{Name: name}}},
			{InputHeaders: []ir.MoreHeaders{{Set: []ir.Header{{Name: name}}}}},
			{MoreHeaders: []ir.MoreHeaders{{Clear: []string{name}}}},
		} {
			if _, err := exchange.NewDirectives(&of); err == nil || !strings.Contains(err.Error(), "cannot change") {
				t.Errorf("%+v: %v", of, err)
			}
		}
	}
}
