package errorlog

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/tests/exchangetest"
)

// logTo returns a Log with limits of its own, and the lines that it writes.
func logTo(level zapcore.Level) (Log, *observer.ObservedLogs) {
	core, lines := observer.New(level)
	return Log{zap.New(core), &recentLines{seed: maphash.MakeSeed()}}, lines
}

// request returns a request from a client for an Ingress.
func request(t *testing.T, ingress string, client int) *exchange.Exchange {
	t.Helper()
	x, _ := exchangetest.New(t, "GET http://a.example/")
	x.Route.Origin = "Ingress/shop/" + ingress
	exchangetest.SetClient(x, netip.AddrFrom4([4]byte{192, 0, byte(client >> 8), byte(client)}))
	return x
}

// TestTenant23Log checks that any number of errors of one Ingress cause a limited number of lines, with the number of
// errors left out, that one client does not hide the errors of others, and that errors of other Ingresses are logged.
func TestTenant23Log(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, lines := logTo(zap.InfoLevel)
		fail := func(ingress string, client, status int) {
			l.Failed(request(t, ingress, client), exchange.Fail(status, errors.New("no")))
		}
		for range 3 {
			for range 1000 {
				fail("noisy", 0, http.StatusForbidden)
			}
			for client := range 100 {
				fail("noisy", 1+client, http.StatusForbidden)
			}
			for client := range 1000 {
				fail("many", client, http.StatusBadGateway)
			}
			fail("noisy", 0, http.StatusNotFound)
			fail("quiet", 0, http.StatusForbidden)
			time.Sleep(2 * period) //nolint:forbidigo // In a synctest bubble this takes no time.
			synctest.Wait()
		}
		seen := map[string]int{}
		for _, line := range lines.TakeAll() {
			all := line.ContextMap()
			seen[fmt.Sprint(line.Level, " ", line.Message, " ", all["namespace"], "/", all["ingress"], " ",
				all["status"], " ", all["left_out"])]++
		}
		want := map[string]int{
			"info a request was rejected shop/noisy 403 <nil>":                           3 * maxOfTopic,
			"info lines left out of the log: a request was rejected shop/noisy 403 1080": 3,
			"info a request was rejected shop/noisy 404 <nil>":                           3,
			"info a request was rejected shop/quiet 403 <nil>":                           3,
			"error a request failed shop/many 502 <nil>":                                 3 * maxOfTopic,
			"error lines left out of the log: a request failed shop/many 502 980":        3,
		}
		if !maps.Equal(seen, want) || l.recent.topics.Len() != 0 || l.recent.lines != 0 {
			t.Errorf("the log has %v, want %v; %+v is left", seen, want, l.recent)
		}
	})
}

// TestAllLines checks that the lines of all Ingresses together are limited, except the first line of each.
func TestAllLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, lines := logTo(zap.InfoLevel)
		for i := range maxLines {
			for client := range 2 {
				l.Failed(request(t, fmt.Sprint(i), client), exchange.Fail(http.StatusForbidden, errors.New("no")))
			}
		}
		if got, want := lines.Len(), maxLines+maxLines/2; got != want {
			t.Errorf("the log has %d lines, want %d", got, want)
		}
		time.Sleep(2 * period) //nolint:forbidigo // In a synctest bubble this takes no time.
		synctest.Wait()
	})
}

// TestLines checks the lines for the ways in which a request can end.
func TestLines(t *testing.T) {
	failure, rejection := exchange.Fail(502, errors.New("down")), exchange.Rejection(503, "closed")
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		log  func(l Log, x *exchange.Exchange)
		want string
	}{
		"nothing": {Log.Answered, ""},
		"failed":  {func(l Log, x *exchange.Exchange) { l.Failed(x, failure) }, "error a request failed 502 down"},
		"rejected": {func(l Log, x *exchange.Exchange) { l.Failed(x, rejection) },
			"info a request was rejected 503 closed"},
		"failed twice": {func(l Log, x *exchange.Exchange) {
			x.Hidden = failure
			l.Failed(x, exchange.Fail(404, errors.New("no host")))
		}, "error a request failed 404 no host; before: down"},
		"answered": {func(l Log, x *exchange.Exchange) {
			_, _ = x.Reject(rejection)
			l.Answered(x)
		}, "info a request was rejected 503 closed"},
		"a page for a failure": {func(l Log, x *exchange.Exchange) {
			x.HideError(failure)
			l.Answered(x)
		}, "error a request failed, and the client got a substitute response 502 down"},
		"a page for an error of the client": {func(l Log, x *exchange.Exchange) {
			x.HideError(exchange.Fail(403, errors.New("address")))
			l.Answered(x)
		}, "info a request was rejected, and the client got a substitute response 403 address"},
		"a page for a rejection": {func(l Log, x *exchange.Exchange) {
			x.HideError(rejection)
			l.Answered(x)
		}, "info a request was rejected 503 closed"},
		"cut off": {func(l Log, x *exchange.Exchange) { l.CutOff(x, failure) }, "warn a response was cut off 502 down"},
		"the client is gone": {func(l Log, x *exchange.Exchange) {
			x.SetContext(gone)
			l.Failed(x, failure)
		}, "debug a request failed 502 down"},
		"the client was gone": {func(l Log, x *exchange.Exchange) {
			l.Failed(x, exchange.Fail(exchange.ClientGone, errors.New("gone")))
		}, "debug a request was rejected 499 gone"},
		"a connection": {func(l Log, _ *exchange.Exchange) { l.Connection(zap.WarnLevel, "closed") },
			"warn closed <nil> <nil>"},
	} {
		l, lines := logTo(zap.DebugLevel)
		c.log(l, request(t, "web", 0))
		got := ""
		for _, line := range lines.TakeAll() {
			all := line.ContextMap()
			got += fmt.Sprint(line.Level, " ", line.Message, " ", all["status"], " ", all["reason"])
		}
		if got != c.want {
			t.Errorf("%s: the log has %q, want %q", name, got, c.want)
		}
	}
}

// TestFields checks that strings of clients are bounded, and that the log has no query, which may contain secrets.
func TestFields(t *testing.T) {
	l, lines := logTo(zap.InfoLevel)
	long := strings.Repeat("x", 1<<15)
	x, _ := exchangetest.New(t, "GET http://"+long+"/"+long+"?token=secret")
	x.Route = nil
	x.Matched = &exchange.Route{Origin: "Ingress/shop/web"}
	x.Method = long
	l.Failed(x, exchange.Fail(403, errors.New(long)))
	all := lines.TakeAll()[0].ContextMap()
	for key, value := range all {
		if text := fmt.Sprint(value); len(text) > 2*maxLogged || strings.Contains(text, "secret") {
			t.Errorf("%s has %d bytes: %q", key, len(text), text)
		}
	}
	if all["namespace"] != "shop" || all["ingress"] != "web" || all["client"] != exchangetest.Client ||
		all["request_id"] != x.ID() {
		t.Errorf("the line is %v", all)
	}
}

// TestOff checks that nothing is counted while the level is off.
func TestOff(t *testing.T) {
	l, _ := logTo(zap.ErrorLevel)
	x := request(t, "web", 0)
	x.Refused = exchange.Rejection(429, "too fast")
	if n := testing.AllocsPerRun(100, func() { l.Answered(x) }); n > 0 || l.recent.topics.Len() > 0 {
		t.Errorf("%v allocations, and %d topics", n, l.recent.topics.Len())
	}
}

// BenchmarkLeftOut measures an error for which no line is written, because there are too many.
func BenchmarkLeftOut(b *testing.B) {
	core, _ := observer.New(zap.InfoLevel)
	l := Log{zap.New(core), &recentLines{seed: maphash.MakeSeed()}}
	x, _ := exchangetest.New(b, "GET http://a.example/")
	x.Refused = exchange.Rejection(429, "too fast")
	b.ReportAllocs()
	for b.Loop() {
		l.Answered(x)
	}
}
