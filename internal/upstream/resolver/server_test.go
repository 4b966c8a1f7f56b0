package resolver_test

import (
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/miekg/dns"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// server is a DNS server on loopback, over UDP and TCP. It returns the records that a test sets.
type server struct {
	testing.TB
	address string

	mu    sync.Mutex
	zone  []dns.RR
	rcode int
	// truncate truncates responses over UDP.
	truncate bool
	// asked counts the queries by "name type network".
	asked map[string]int
}

// silentZone is the suffix of names for which the server never responds.
const silentZone = ".tar.pit."

// serve starts a DNS server. Call it outside of a synctest bubble: waiting for the network would stop the bubble's
// clock.
func serve(t *testing.T, records ...string) *server {
	t.Helper()
	s := &server{TB: t, address: fixture.Address(t), asked: map[string]int{}}
	packets, err := net.ListenPacket("udp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	s.set(records...)
	for _, one := range []*dns.Server{{PacketConn: packets, Handler: s.over("udp")},
		{Listener: listener, Handler: s.over("tcp")}} {
		started, ended := make(chan struct{}), make(chan struct{})
		one.NotifyStartedFunc = func() { close(started) }
		go func() {
			defer close(ended)
			if err := one.ActivateAndServe(); err != nil {
				t.Error(err)
			}
		}()
		fixture.Receive(t, "the start of the server", started)
		t.Cleanup(func() {
			if err := one.Shutdown(); err != nil {
				t.Error(err)
			}
			fixture.Receive(t, "the end of the server", ended)
		})
	}
	return s
}

// set replaces the records.
func (s *server) set(records ...string) {
	s.Helper()
	var zone []dns.RR
	for _, text := range records {
		record, err := dns.NewRR(text)
		if err != nil {
			s.Fatal(err)
		}
		zone = append(zone, record)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.zone, s.rcode = zone, dns.RcodeSuccess
}

// fail makes the server return this code for all queries.
func (s *server) fail(rcode int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rcode = rcode
}

// cut makes the server truncate responses over UDP.
func (s *server) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.truncate = true
}

// times returns how often the server got a query such as "web.example. A udp".
func (s *server) times(question string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[question]
}

func (s *server) over(network string) dns.HandlerFunc {
	return func(w dns.ResponseWriter, question *dns.Msg) {
		answer := s.answer(network, question)
		if strings.HasSuffix(question.Question[0].Name, silentZone) {
			return
		}
		if err := w.WriteMsg(answer); err != nil {
			s.Error(err)
		}
	}
}

func (s *server) answer(network string, question *dns.Msg) *dns.Msg {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := question.Question[0]
	s.asked[fmt.Sprintf("%s %s %s", q.Name, dns.TypeToString[q.Qtype], network)]++
	m := new(dns.Msg)
	m.SetRcode(question, s.rcode)
	m.RecursionAvailable = true
	if s.rcode != dns.RcodeSuccess {
		return m
	}
	known := false
	for _, record := range s.zone {
		if h := record.Header(); strings.EqualFold(h.Name, q.Name) {
			known = true
			if h.Rrtype == q.Qtype || h.Rrtype == dns.TypeCNAME {
				m.Answer = append(m.Answer, record)
			}
		}
	}
	if !known {
		m.Rcode = dns.RcodeNameError
	}
	if s.truncate && network == "udp" {
		m.Answer, m.Truncated = nil, true
	}
	return m
}
