package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log" //nolint:depguard // Pebble takes no other
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/letsencrypt/pebble/v2/ca"
	"github.com/letsencrypt/pebble/v2/db"
	"github.com/letsencrypt/pebble/v2/va"
	"github.com/letsencrypt/pebble/v2/wfe"
)

type options struct {
	folder            string
	httpPort, tlsPort int
	validity          uint64
}

// serve starts the authority and its control server, and returns their addresses.
func serve(ctx context.Context, o options) (*where, error) {
	logger := log.New(os.Stderr, "", log.LstdFlags)
	dns, err := startDNS(ctx, logger)
	if err != nil {
		return nil, err
	}
	store := db.NewMemoryStore()
	profiles := map[string]ca.Profile{"default": {Description: "the only one", ValidityPeriod: o.validity}}
	authority := ca.New(logger, store, "", "ecdsa", 0, 1, profiles)
	validation := va.New(logger, o.httpPort, o.tlsPort, false, dns, store)
	front := wfe.New(logger, store, validation, authority, []string{"ca.test"}, false, false, 0, 0)
	faults := &faults{next: front.Handler(), taken: taken{Orders: map[string]int{}, Replacing: map[string]int{}}}

	certificate, root, err := makeCertificate(o.folder)
	if err != nil {
		return nil, err
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{certificate}})
	if err != nil {
		return nil, err
	}
	control, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	go func() { logger.Fatal(http.Serve(listener, faults)) }()
	go func() { logger.Fatal(http.Serve(control, controls(faults, newZone(), front.ManagementHandler()))) }()
	return &where{
		Directory: "https://" + listener.Addr().String() + wfe.DirectoryPath, Root: root,
		Control: "http://" + control.Addr().String(), DNS: dns,
	}, nil
}

// makeCertificate creates the certificate of the authority's HTTPS server, and writes it to a file.
func makeCertificate(folder string) (tls.Certificate, string, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, "", err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(1, 0, 0),
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, "", err
	}
	file := filepath.Join(folder, "authority.pem")
	data := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if err := os.WriteFile(file, data, 0o600); err != nil {
		return tls.Certificate{}, "", err
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, file, nil
}
