package webhook_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/k8singress/k8singress/internal/control/webhook"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// TestFiles checks that the files are read again when they change, and that half-written files keep the old pair.
func TestFiles(t *testing.T) {
	r := start(t)
	folder := t.TempDir()
	certificate, key := filepath.Join(folder, "cert"), filepath.Join(folder, "key")
	core, logs := observer.New(zap.ErrorLevel)
	files := webhook.NewFiles(certificate, key, zap.New(core))
	r.server.Configure(r.address, files)
	fixture.Eventually(t, "the log has the missing file before the first handshake", func() error {
		if n := logs.FilterMessage("cannot read the certificate of the admission webhook").Len(); n != 1 {
			return fmt.Errorf("it has %d lines about it", n)
		}
		return nil
	})
	serves := func(name string) func() error {
		return func() error {
			c, err := tls.Dial("tcp", r.address, &tls.Config{InsecureSkipVerify: true})
			if err != nil {
				return err
			}
			defer c.Close()
			if got := c.ConnectionState().PeerCertificates[0].DNSNames[0]; got != name {
				return fmt.Errorf("the certificate is for %s, want %s", got, name)
			}
			return nil
		}
	}
	if serves("one")() == nil {
		t.Error("there is a certificate without files")
	}
	write := func(file string, text []byte) {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	one, two := r.leaf("one"), r.leaf("two")
	write(certificate, one.PEM())
	write(key, one.KeyPEM())
	fixture.Eventually(t, "the first pair", serves("one"))
	for name, half := range map[string][]byte{
		"half": two.PEM()[:100], "empty": nil, "of another key": two.PEM(), "garbage": bytes.Repeat([]byte("x"), 99),
	} {
		write(certificate, half)
		// The files are checked at most once in a second.
		for begin := time.Now(); time.Since(begin) < 1100*time.Millisecond; {
			if err := serves("one")(); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
	write(certificate, two.PEM())
	write(key, two.KeyPEM())
	fixture.Eventually(t, "the second pair", serves("two"))
	if err := os.Remove(key); err != nil {
		t.Fatal(err)
	}
	if err := serves("two")(); err != nil {
		t.Error(err)
	}
}

// TestHangingFiles checks that Configure and the end of Run do not wait for a source that does not respond.
func TestHangingFiles(t *testing.T) {
	s := webhook.NewServer(webhook.NewHandler(nil, zap.NewNop()), zap.NewNop())
	hanging, release := make(chan struct{}), make(chan struct{})
	defer close(release)
	s.Configure(fixture.Address(t), source(func() (*tls.Certificate, error) {
		close(hanging)
		<-release
		return nil, errors.New("the volume does not respond")
	}))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		s.Run(ctx)
		close(ended)
	}()
	fixture.Receive(t, "the source is asked", hanging)
	s.Configure("", nil)
	cancel()
	fixture.Receive(t, "the server ends", ended)
}
