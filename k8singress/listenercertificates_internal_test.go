package k8singress

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"strconv"
	"testing"

	"github.com/caddyserver/caddy/v2"

	"github.com/k8singress/k8singress/internal/control/engine"
	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/settings"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// serveDocument runs Caddy with a document, and waits until it is in effect and the engine is idle. Only then may the
// test set Secrets, which belong to the engine.
func serveDocument(t *testing.T, d *document.Live) *engine.Engine {
	t.Helper()
	whole := engine.Compose(settings.Config{HTTP: []string{fixture.Address(t)}, HTTPS: []string{fixture.Address(t)},
		Admin: settings.AdminOff}, d)
	whole["admin"] = map[string]any{"disabled": true}
	text, err := json.Marshal(whole)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := caddy.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err := caddy.Load(text, true); err != nil {
		t.Fatal(err)
	}
	e := started.engine()
	if err := e.Load(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	return e
}

// shown returns the first name in the certificate that a client of a port gets.
func shown(port uint16, server string) (string, error) {
	conn, err := tls.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port))),
		&tls.Config{ServerName: server, InsecureSkipVerify: true})
	if err != nil {
		return "", err
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0].DNSNames[0], nil
}

// TestCertificatesOfListeners checks that a listener uses its own certificates: the one for the server name, or else
// the first one, and a new one as soon as its Secret changes. A listener without certificates uses the certificates of
// hosts.
func TestCertificatesOfListeners(t *testing.T) {
	number, err := strconv.ParseUint(fixture.Port(t), 10, 16)
	if err != nil {
		t.Fatal(err)
	}
	port, in := uint16(number), func(name string) ir.Name { return ir.Name{Namespace: "shop", Name: name} }
	e := serveDocument(t, &document.Live{
		ListenerGroups: map[string]*document.ListenerGroup{"gw": {Origin: ir.ParseRef("Gateway/shop/gw"),
			Listeners: []ir.Listener{
				{Name: "all", Port: port, Protocol: ir.ListenerHTTPS, Certificates: []ir.Name{in("a"), in("b")}},
				{Name: "c", Port: port, Protocol: ir.ListenerHTTPS, Hostname: "*.c.example",
					Certificates: []ir.Name{in("c")}},
				{Name: "d", Port: port, Protocol: ir.ListenerHTTPS, Hostname: "d.example"},
			}}},
		Certificates: map[string]*ir.Certificate{"d.example": {Secret: in("d")}, "a.example": {Secret: in("other")}},
	})
	fixture.Eventually(t, "the port", func() error {
		_, err := shown(port, "a.example")
		return err
	})
	for name, host := range map[string]string{"a": "a.example", "b": "*.b.example", "c": "x.c.example",
		"d": "d.example"} {
		e.Certificates().SetSecret(in(name), fixture.Certificate(t, host).Secret(), true)
	}
	e.Certificates().SetSecret(in("other"), fixture.Certificate(t, "other.example", "a.example").Secret(), true)
	for server, want := range map[string]string{
		"a.example": "a.example", "x.b.example": "*.b.example", "nobody.example": "a.example", "": "a.example",
		"x.c.example": "x.c.example",
		"y.c.example": "x.c.example", "d.example": "d.example",
	} {
		if got, err := shown(port, server); err != nil || got != want {
			t.Errorf("%q is shown %s, %v; want %s", server, got, err, want)
		}
	}
	e.Certificates().SetSecret(in("c"), fixture.Certificate(t, "new.c.example").Secret(), true)
	if got, err := shown(port, "x.c.example"); err != nil || got != "new.c.example" {
		t.Errorf("then it is %s, %v", got, err)
	}
	e.Certificates().SetSecret(in("b"), nil, false)
	var said string
	for _, v := range e.Certificates().Problems() {
		if v.Object.String() == "Gateway/shop/gw" {
			for _, p := range v.Problems {
				said += fmt.Sprintln(p.Severity, p.Reason, p.Message)
			}
		}
	}
	want := "error SecretNotFound Secret shop/b, which does not exist or may not be read; the last good certificate " +
		"is used until it does\n"
	if said != want {
		t.Errorf("the object is told %s, want %s", said, want)
	}
}
