package filter_test

import (
	"errors"
	"net/http"
	"testing"

	"golang.org/x/net/http/httpguts"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/filter"
	"github.com/k8singress/k8singress/internal/http/http1"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/tests/exchangetest"
)

// requestHeadOf returns an error if the request cannot be sent to an endpoint.
func requestHeadOf(x *exchange.Exchange) error {
	fields := append(message.Fields(nil), x.Fields...)
	x.AddForEndpoint(&fields)
	_, err := http1.AppendRequestHead(nil,
		&http1.RequestLine{Method: x.Method, Target: x.OutTarget(), Host: x.Host}, fields)
	return err
}

// responseHeadOf returns an error if the response cannot be sent to a client.
func responseHeadOf(response *message.Response) error {
	_, err := http1.AppendResponseHead(nil, response, &http1.ResponseOptions{Date: "now"})
	return err
}

// FuzzProgram checks that each program that is accepted leaves a valid request for the endpoint and a valid response to
// the client, for any target and any header field of a request.
func FuzzProgram(f *testing.F) {
	for _, c := range programCases {
		for _, target := range []string{"/", "/a/%0d%0a%C3%A9%2e?q=%00&a=1", "/a/..;/%2e%2e/b\\?"} {
			f.Add(c.settings, target, "a\x80\t\u0085")
		}
	}
	f.Fuzz(func(t *testing.T, settings, target, value string) {
		program, _, err := filter.New("k8singress_program", []byte(settings), nil)
		if err != nil || !httpguts.ValidHeaderFieldValue(value) {
			return
		}
		x, recorder := exchangetest.New(t, "GET http://shop.example/")
		x.Fields.Add(message.NewField("A", value))
		x.Route = at("shop.example", "regex", "/(?<first>[^/]*)(.*)")
		if x.SetTarget(target) != nil || requestHeadOf(x) != nil {
			return
		}
		responded, err := program.Apply(x)
		var failure *exchange.Failure
		switch {
		case responded:
		case err == nil:
			if err := requestHeadOf(x); err != nil {
				t.Fatalf("%s with %q: the request for the endpoint: %v", settings, target, err)
			}
			if err := x.Head(&message.Response{Status: http.StatusOK}); err != nil {
				t.Fatal(err)
			}
		case errors.As(err, &failure):
			recorder.Response = x.Refusal(failure.Status)
		case errors.Is(err, exchange.ErrReroute), errors.Is(err, exchange.ErrAborted):
			return
		default:
			t.Fatalf("%s with %q: %v", settings, target, err)
		}
		if err := responseHeadOf(recorder.Response); err != nil {
			t.Fatalf("%s with %q: the response %q: %v", settings, target, recorder, err)
		}
	})
}
