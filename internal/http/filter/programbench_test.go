package filter_test

import (
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/tests/exchangetest"
)

// threeDirectives has one condition that is false, and sets one header field of the request and one of the response.
const threeDirectives = `{"steps": [
		{"if": {"variable": "http_user_agent", "operator": "~*", "value": "badbot",
			"steps": [{"return": {"status": 403}}]}}],
	"endpoint_headers": [{"name": "X-Method", "value": "$request_method"}],
	"add_headers": [{"name": "X-Frame-Options", "value": "DENY", "always": true}]}`

// serveWith applies the program to copies of a request, which it sends to an endpoint, and to the response. It uses the
// same memory each time.
func serveWith(t testing.TB, settings string) func() {
	program := newEnvironment(t).newFilter(t, "k8singress_program", settings)
	x, recorder := exchangetest.New(t, "GET http://shop.example/a/b?c=d | User-Agent: curl/8.14.1")
	plain, fields, response := *x, make(message.Fields, 0, 32), &message.Response{}
	return func() {
		*x = plain
		if responded, err := program.Apply(x); responded || err != nil {
			t.Fatal(responded, err)
		}
		fields = fields[:0]
		x.AddForEndpoint(&fields)
		*response, recorder.Response = message.Response{Status: 200, Fields: fields}, nil
		if err := x.Head(response); err != nil || len(response.Fields) != 2 {
			t.Fatal(response, err)
		}
	}
}

// TestProgramDoesNotAllocate checks a program that sets no variables.
func TestProgramDoesNotAllocate(t *testing.T) {
	// Package regexp has memory pools, from which the race detector drops some values.
	settings := strings.Replace(threeDirectives, `"~*"`, `"="`, 1)
	if allocs := testing.AllocsPerRun(100, serveWith(t, settings)); allocs > 0 {
		t.Errorf("a request needs %v allocations", allocs)
	}
}

// BenchmarkProgram measures a program with three directives, without the rest of a request.
func BenchmarkProgram(b *testing.B) {
	serve := serveWith(b, threeDirectives)
	b.ReportAllocs()
	for b.Loop() {
		serve()
	}
}
