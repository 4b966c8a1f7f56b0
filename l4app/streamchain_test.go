package l4app

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/mholt/caddy-l4/modules/l4close"
	_ "github.com/mholt/caddy-l4/modules/l4regexp"
	_ "github.com/mholt/caddy-l4/modules/l4subroute"
	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/http/accesslog"
	"github.com/k8singress/k8singress/internal/model/ir"
)

// Definitions of stream chains.
const (
	// onlyHello closes connections that do not start with "hello".
	onlyHello = `{"routes":[{"match":[{"not":[{"regexp":{"pattern":"^hello","count":5}}]}],` +
		`"handle":[{"handler":"close"}]}]}`
	// nothing closes all connections.
	nothing = `{"routes":[{"handle":[{"handler":"close"}]}]}`
)

func definitions(pairs ...string) map[string]json.RawMessage {
	all := map[string]json.RawMessage{}
	for i := 0; i < len(pairs); i += 2 {
		all[pairs[i]] = json.RawMessage(pairs[i+1])
	}
	return all
}

// chained returns a route whose connections pass through chains.
func chained(t *testing.T, chains ...string) *ir.StreamRoute {
	t.Helper()
	r := route(ir.TCP, freePort(t), "a")
	r.Chains = chains
	return r
}

// echoesAfter sends a text on a new connection, and expects that a backend named "a" gets it whole.
func echoesAfter(t *testing.T, r *ir.StreamRoute, text string) {
	t.Helper()
	conn := dial(t, r)
	send(t, conn, text)
	expect(t, conn, "a"+text)
}

func closesAfter(t *testing.T, r *ir.StreamRoute, text string) {
	t.Helper()
	conn := dial(t, r)
	send(t, conn, text)
	expectEnd(t, conn)
}

// TestStreamChain checks that the routes of all chains see a connection, that a route can close it, and that the
// backend also gets the bytes that matchers have read.
func TestStreamChain(t *testing.T) {
	w := newWorld(t)
	file := filepath.Join(t.TempDir(), "log")
	log := accesslog.NewStreams(&ir.StreamLog{Format: "$status", Path: file}, accesslog.NewFiles(zap.NewNop()))
	w.ports.tables.AccessLog = func() *accesslog.Streams { return log }
	w.ports.Adopt(w.ctx, definitions("hello", onlyHello, "world", strings.Replace(onlyHello, "^hello", "^....o", 1)))
	r := chained(t, "hello", "world")
	w.set(r, named(t, "a"))
	closesAfter(t, r, "jello, backend")
	echoesAfter(t, r, "hello, backend")
	await(t, "the status of the closed connection in the access log", func() bool {
		text, err := os.ReadFile(file)
		return err == nil && string(text) == "403\n"
	})
}

// TestStreamChainChanges checks that a new Caddy configuration changes the chains of an open port for new connections
// only, and closes the port if it lacks a chain.
func TestStreamChainChanges(t *testing.T) {
	w := newWorld(t)
	w.ports.Adopt(w.ctx, definitions("hello", onlyHello))
	r, other := chained(t, "hello"), route(ir.TCP, freePort(t), "other")
	w.set(other, named(t, "other"))
	w.set(r, named(t, "a"))
	open := dial(t, r)
	send(t, open, "hello")
	expect(t, open, "ahello")

	if refused := w.ports.Adopt(w.ctx, definitions("hello", nothing)); len(refused) > 0 {
		t.Fatalf("refused: %v", refused)
	}
	closesAfter(t, r, "hello")

	refused := w.ports.Adopt(w.ctx, nil)
	if len(refused) != 1 || refused[0].Name != portName(r) ||
		!strings.Contains(refused[0].Err.Error(), `there is no stream chain "hello"`) {
		t.Errorf("refused are %v", refused)
	}
	send(t, open, "still there")
	expect(t, open, "still there")
	expect(t, dial(t, other), "other")
	if got := w.ports.Names(); len(got) != 1 || got[0] != portName(other) {
		t.Errorf("open are %q, want the port without a chain", got)
	}

	w.ports.Adopt(w.ctx, definitions("hello", onlyHello))
	if refused := w.ports.Retry(w.ctx); len(refused) > 0 {
		t.Fatalf("refused: %v", refused)
	}
	echoesAfter(t, r, "hello")
}

// TestStreamChainRejected checks that a port stays closed if one of its chains cannot be provisioned, and that a
// configuration with such a chain is rejected.
func TestStreamChainRejected(t *testing.T) {
	for name, test := range map[string]struct{ definition, words string }{
		"unknown handler": {`{"routes":[{"handle":[{"handler":"nope"}]}]}`, "nope"},
		"unknown field":   {`{"routs":[]}`, "routs"},
		"no routes":       {`{}`, "no routes"},
		"bad network": {`{"routes":[{"match":[{"remote_ip":{"ranges":["nope"]}}],"handle":[{"handler":"close"}]}]}`,
			"nope"},
		"limit of a handler": {`{"routes":[{"handle":[{"handler":"subroute","routes":[{"handle":[{"handler":` +
			`"k8singress","service":"default/db:5432","policy":{"max_connections":1}}]}]}]}]}`,
			"max_connections cannot be set in a stream chain"},
		"itself": {`{"routes":[{"handle":[{"handler":"k8singress_chain","name":"c"}]}]}`, "cannot contain another"},
		"itself in a subroute": {`{"routes":[{"handle":[{"handler":"subroute","routes":[{"handle":` +
			`[{"handler":"k8singress_chain","name":"c"}]}]}]}]}`, "cannot contain another"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			chains := definitions("c", test.definition)
			if err := CheckStreamChains(w.ctx, chains); err == nil || !strings.Contains(err.Error(), test.words) ||
				!strings.Contains(err.Error(), "stream chain c") {
				t.Errorf("the error is %v, want one about %s", err, test.words)
			}
			w.ports.Adopt(w.ctx, chains)
			r := chained(t, "c")
			refused := w.ports.Update(w.ctx, one(r))
			if len(refused) != 1 || !strings.Contains(refused[0].Err.Error(), test.words) || len(w.ports.Names()) > 0 {
				t.Errorf("refused are %v, open are %q", refused, w.ports.Names())
			}
		})
	}
	if err := CheckStreamChains(newWorld(t).ctx, definitions("hello", onlyHello, "no", nothing)); err != nil {
		t.Error(err)
	}
}
