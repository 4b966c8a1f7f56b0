package featuretests

import (
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"testing"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// sessions is a session cache that signals when it has stored a session.
type sessions struct {
	tls.ClientSessionCache
	got chan struct{}
}

func (s *sessions) Put(key string, state *tls.ClientSessionState) {
	s.ClientSessionCache.Put(key, state)
	if state != nil {
		select {
		case s.got <- struct{}{}:
		default:
		}
	}
}

// TestNoEarlyData checks that a returning client of HTTP/3 sends no request before its handshake is complete, because
// an attacker could replay such a request from another address. ssl-early-data does not change this.
func TestNoEarlyData(t *testing.T) {
	ip, port := backend(t, "web")
	in := start(t, class+service("web", port, ip)+annotated("a", "a.example", "web")+
		global(`ssl-early-data: "true"`),
		"configmap default/global")
	kept := &sessions{tls.NewLRUClientSessionCache(1), make(chan struct{}, 1)}
	ask := func() (state quic.ConnectionState) {
		var conn *quic.Conn
		transport := &http3.Transport{
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true, ClientSessionCache: kept},
			Dial: func(ctx context.Context, _ string, t *tls.Config, q *quic.Config) (_ *quic.Conn, err error) {
				conn, err = quic.DialAddrEarly(ctx, in.https, t, q)
				return conn, err
			},
		}
		defer func() { _ = transport.Close() }()
		request, err := http.NewRequestWithContext(t.Context(), http3.MethodGet0RTT, "https://a.example/", nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := transport.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		if err != nil || string(body) != "web /" || response.Body.Close() != nil {
			t.Errorf("%q: %v", body, err)
		}
		fixture.Receive(t, "a session", kept.got)
		return conn.ConnectionState()
	}
	ask()
	if second := ask(); !second.TLS.DidResume || second.Used0RTT {
		t.Errorf("the second connection resumes the first one: %t, and has sent its request early: %t",
			second.TLS.DidResume, second.Used0RTT)
	}
}
