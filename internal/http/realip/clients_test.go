package realip_test

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/http/realip"
	"github.com/k8singress/k8singress/internal/model/ir"
)

func request(peer string, secure bool, header http.Header) *message.Request {
	r := httptest.NewRequest(http.MethodGet, "http://shop.example/", nil)
	r.RemoteAddr, r.Header = peer, header
	if secure {
		r.TLS = &tls.ConnectionState{}
	}
	local := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080}
	var m message.Request
	m.FromHTTP(r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, local)))
	return &m
}

func TestOf(t *testing.T) {
	forwarded := http.Header{
		"X-Forwarded-For": {"9.9.9.9, 10.0.0.7"}, "X-Forwarded-Proto": {"https"}, "X-Forwarded-Host": {"www.example"},
		"X-Forwarded-Port": {"444"},
	}
	for name, c := range map[string]struct {
		options ir.Clients
		peer    string
		secure  bool
		header  http.Header
		want    realip.Client
		full    string
	}{
		"nobody is believed": {
			peer: "192.0.2.1:99", header: forwarded,
			want: realip.Client{IP: "192.0.2.1", Peer: "192.0.2.1", Proto: "http", Host: "shop.example", Port: "8080"},
			full: "192.0.2.1",
		},
		"https has the port 443": {
			peer: "[2001:db8::1%eth0]:99", secure: true,
			want: realip.Client{IP: "2001:db8::1", Peer: "2001:db8::1", Proto: "https",
				Host: "shop.example", Port: "443"},
			full: "2001:db8::1",
		},
		"everybody is believed": {
			options: ir.Clients{UseForwarded: true}, peer: "192.0.2.1:99", header: forwarded,
			want: realip.Client{IP: "9.9.9.9", Peer: "192.0.2.1", Proto: "https", Host: "www.example", Port: "444",
				Believed: true},
			full: "9.9.9.9",
		},
		"the whole list": {
			options: ir.Clients{UseForwarded: true, AppendForwarded: true}, peer: "192.0.2.1:99", header: forwarded,
			want: realip.Client{IP: "9.9.9.9", Peer: "192.0.2.1", Proto: "https", Host: "www.example", Port: "444",
				Believed: true},
			full: "9.9.9.9, 10.0.0.7, 192.0.2.1",
		},
		"the last that is not trusted": {
			options: ir.Clients{UseForwarded: true, Trusted: []string{"10.0.0.0/8"}}, peer: "10.1.1.1:99",
			header: http.Header{"X-Forwarded-For": {"6.6.6.6, 9.9.9.9", "10.0.0.7:55"}},
			want: realip.Client{IP: "9.9.9.9", Peer: "10.1.1.1", Proto: "http", Host: "shop.example", Port: "8080",
				Believed: true},
			full: "9.9.9.9",
		},
		"a peer that is not trusted": {
			options: ir.Clients{UseForwarded: true, AppendForwarded: true, Trusted: []string{"10.0.0.0/8"}},
			peer:    "192.0.2.1:99", header: forwarded,
			want: realip.Client{IP: "192.0.2.1", Peer: "192.0.2.1", Proto: "http", Host: "shop.example", Port: "8080"},
			full: "192.0.2.1",
		},
		"a network that cannot be read trusts nobody": {
			options: ir.Clients{UseForwarded: true, Trusted: []string{"10.0.0.0/99"}}, peer: "10.1.1.1:99",
			header: forwarded,
			want:   realip.Client{IP: "10.1.1.1", Peer: "10.1.1.1", Proto: "http", Host: "shop.example", Port: "8080"},
			full:   "10.1.1.1",
		},
		"only the address": {
			options: ir.Clients{RealIP: true, Header: "cf-connecting-ip"}, peer: "192.0.2.1:99",
			header: http.Header{"Cf-Connecting-Ip": {"9.9.9.9"}, "X-Forwarded-Proto": {"https"}},
			want:   realip.Client{IP: "9.9.9.9", Peer: "192.0.2.1", Proto: "http", Host: "shop.example", Port: "8080"},
			full:   "9.9.9.9",
		},
		"the last address": {
			options: ir.Clients{RealIP: true, LastAddress: true, Trusted: []string{"10.0.0.0/8"}}, peer: "10.1.1.1:99",
			header: http.Header{"X-Forwarded-For": {"6.6.6.6", "9.9.9.9, 10.0.0.7"}},
			want:   realip.Client{IP: "10.0.0.7", Peer: "10.1.1.1", Proto: "http", Host: "shop.example", Port: "8080"},
			full:   "10.0.0.7",
		},
		"what is no address": {
			options: ir.Clients{UseForwarded: true}, peer: "192.0.2.1:99",
			header: http.Header{"X-Forwarded-For": {"unknown"}},
			want: realip.Client{IP: "192.0.2.1", Peer: "192.0.2.1", Proto: "http", Host: "shop.example", Port: "8080",
				Believed: true},
			full: "192.0.2.1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := request(c.peer, c.secure, c.header)
			policy := realip.New(c.options)
			got := policy.Of(r)
			if got != c.want {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
			if full := policy.ForwardedFor(r, &got); full != c.full {
				t.Errorf("X-Forwarded-For: %q, want %q", full, c.full)
			}
		})
	}
}

func TestUnixSocketHasNoAddress(t *testing.T) {
	got := realip.New(ir.Clients{UseForwarded: true}).Of(request("@", false,
		http.Header{"X-Forwarded-For": {"9.9.9.9"}}))
	if got.IP != "" || got.Believed {
		t.Errorf("got %+v", got)
	}
}
