package mirror

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/http/callout"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/process/budget"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// mirrors is a Sender whose calls return when the test ends or the call is canceled.
type mirrors struct {
	*Sender
	under atomic.Int64
	calls chan *callout.Call
}

func newMirrors(t *testing.T) *mirrors {
	m := &mirrors{calls: make(chan *callout.Call, 2*maxInFlight)}
	m.Sender = NewSender(func(r *message.Request, call *callout.Call) (callout.Response, error) {
		m.under.Add(1)
		defer m.under.Add(-1)
		m.calls <- call
		<-r.Context().Done()
		return callout.Response{}, r.Context().Err()
	}, zap.NewNop())
	t.Cleanup(m.Close)
	return m
}

func callOf(namespace string) *callout.Call {
	return &callout.Call{Service: Service, Namespace: namespace}
}

// droppedFor returns the number of requests that were dropped for a reason.
func (m *mirrors) droppedFor(why Reason) int {
	registry := prometheus.NewRegistry()
	registry.MustRegister(m.dropped)
	families, err := registry.Gather()
	if err != nil {
		panic(err)
	}
	for _, metric := range families[0].Metric {
		if metric.Label[0].GetValue() == string(why) {
			return int(metric.Counter.GetValue())
		}
	}
	return 0
}

// TestDeadMirrorsLeaveRoom checks that the copies of one Ingress or one namespace leave room for others, and that Close
// ends all copies.
func TestDeadMirrorsLeaveRoom(t *testing.T) {
	m := newMirrors(t)
	for range maxInFlight {
		m.Send(callOf("shop"), "one")
	}
	one := maxInFlight - m.droppedFor(Busy)
	for range maxInFlight {
		m.Send(callOf("shop"), "two")
	}
	two := 2*maxInFlight - m.droppedFor(Busy) - one
	before := m.droppedFor(Busy)
	m.Send(callOf("other"), "three")
	if one == 0 || two == 0 || one+two >= maxInFlight || m.droppedFor(Busy) != before {
		t.Errorf("one Ingress has %d, another one %d of %d, and %d were dropped", one, two, maxInFlight,
			m.droppedFor(Busy))
	}
	for range one + two + 1 {
		fixture.Receive(t, "a call", m.calls)
	}
	m.Close()
	if left := m.under.Load() + m.slots.Used(); left != 0 {
		t.Errorf("%d are left", left)
	}
	m.Send(callOf("other"), "three")
	if m.under.Load()+m.slots.Used() != 0 {
		t.Error("there is one after the end")
	}
}

// TestCopyWithoutConnection checks that a copy is counted as dropped, and not as failed, if its namespace has no free
// connection.
func TestCopyWithoutConnection(t *testing.T) {
	m := newMirrors(t)
	m.call = func(*message.Request, *callout.Call) (callout.Response, error) {
		return callout.Response{}, fmt.Errorf("mirror at 192.0.2.1:80: %w", callout.ErrBusy)
	}
	m.Send(callOf("shop"), "one")
	if m.running.Wait(); m.droppedFor(Busy) != 1 {
		t.Errorf("%d copies are dropped, want 1", m.droppedFor(Busy))
	}
}

// TestBodies checks that a copy is only sent with a complete body, and that its memory is released.
func TestBodies(t *testing.T) {
	large := strings.Repeat("x", MaxBody)
	for name, c := range map[string]struct {
		body   string
		length int64
		read   int
		sent   bool
	}{
		"sized": {"hello", 5, 5, true}, "empty": {"", -1, 1, true}, "of no known length": {"hello", -1, 6, true},
		"as long as may be":         {large, MaxBody, MaxBody, true},
		"too long":                  {large + "x", MaxBody + 1, MaxBody + 1, false},
		"too long, as it turns out": {large + "x", -1, MaxBody + 2, false},
		"not read to its end":       {"hello", 5, 4, false},
		"its end not read":          {"hello", -1, 5, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMirrors(t)
			source := iotest.OneByteReader(strings.NewReader(c.body))
			if c.length > 1000 || len(c.body) > 1000 {
				source = strings.NewReader(c.body)
			}
			if body := m.SendWith(callOf("shop"), "one", source, c.length); body != nil {
				got := make([]byte, c.read)
				n, _ := io.ReadFull(body, got)
				if !bytes.Equal(got[:n], []byte(c.body[:min(c.read, len(c.body))])) {
					t.Errorf("what is read is another body, of %d bytes", n)
				}
				body.End()
			}
			if !c.sent {
				if m.droppedFor(Body) != 1 || m.slots.Used() != 0 || m.memory.Used() != 0 {
					t.Errorf("%d dropped, %d under way, and %d bytes kept", m.droppedFor(Body), m.slots.Used(),
						m.memory.Used())
				}
				return
			}
			if call := fixture.Receive(t, "the copy", m.calls); string(call.Body) != c.body {
				t.Errorf("the copy has %d bytes of %d", len(call.Body), len(c.body))
			}
			m.Close()
			if m.memory.Used() != 0 || m.droppedFor(Body) != 0 {
				t.Errorf("%d bytes are kept, and %d dropped", m.memory.Used(), m.droppedFor(Body))
			}
		})
	}
}

// TestBrokenBodyIsNotCopied checks that a request with an incomplete body, or without room for its body, is not copied,
// and that this does not affect the reader of the body.
func TestBrokenBodyIsNotCopied(t *testing.T) {
	m := newMirrors(t)
	broken := errors.New("broken")
	body := m.SendWith(callOf("shop"), "one", io.MultiReader(strings.NewReader("hel"), iotest.ErrReader(broken)), 5)
	if _, err := io.ReadAll(body); !errors.Is(err, broken) || m.droppedFor(Body) != 1 {
		t.Errorf("%v, and %d dropped", err, m.droppedFor(Body))
	}
	var waiting []*Copied
	for m.droppedFor(Body) == 1 && int64(len(waiting)) < budget.Mirrors.Limit()/firstBytes {
		c := m.SendWith(callOf("shop"), "one", strings.NewReader("hello"), 6)
		if _, err := io.ReadFull(c, make([]byte, 5)); err != nil {
			t.Fatal(err)
		}
		waiting = append(waiting, c)
	}
	other := m.SendWith(callOf("other"), "two", strings.NewReader("hello"), 5)
	if _, err := io.ReadFull(other, make([]byte, 5)); err != nil || m.droppedFor(Body) != 2 {
		t.Errorf("%v, and %d dropped after %d", err, m.droppedFor(Body), len(waiting))
	}
	fixture.Receive(t, "the copy of another namespace", m.calls)
	for _, c := range waiting {
		c.End()
	}
	m.Close()
	if m.memory.Used() != 0 {
		t.Errorf("%d bytes are kept", m.memory.Used())
	}
}
