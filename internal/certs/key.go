package certs

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
)

// minRSA is the length in bits of the shortest RSA key that crypto/tls works with.
const minRSA = 1024

// readKey returns the first private key in PEM. Blocks before it, such as the EC PARAMETERS that openssl writes, are
// passed over, as crypto/tls does.
func readKey(data []byte) (crypto.Signer, error) {
	block, rest := pem.Decode(data)
	if block == nil {
		return nil, fmt.Errorf("%s has no PEM block", privateKey)
	}
	for ; block != nil; block, rest = pem.Decode(rest) {
		if !strings.HasSuffix(block.Type, "PRIVATE KEY") {
			continue
		}
		if block.Type == "ENCRYPTED PRIVATE KEY" || strings.Contains(block.Headers["Proc-Type"], "ENCRYPTED") {
			return nil, fmt.Errorf("the key in %s is encrypted: store it without a passphrase", privateKey)
		}
		return parseKey(block)
	}
	return nil, fmt.Errorf("%s has no private key in PEM", privateKey)
}

func parseKey(block *pem.Block) (crypto.Signer, error) {
	var key any
	var err error
	switch block.Type {
	case "RSA PRIVATE KEY":
		key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	case "EC PRIVATE KEY":
		key, err = x509.ParseECPrivateKey(block.Bytes)
	default:
		key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	}
	if err != nil {
		return nil, fmt.Errorf("the key in %s cannot be read: %w", privateKey, err)
	}
	return usable(key)
}

// usable refuses the keys that every handshake would fail with.
func usable(key any) (crypto.Signer, error) {
	switch k := key.(type) {
	case *rsa.PrivateKey:
		if bits := k.N.BitLen(); bits < minRSA {
			return nil, fmt.Errorf("the RSA key has %d bits, and TLS needs at least %d", bits, minRSA)
		}
		return k, nil
	case *ecdsa.PrivateKey:
		if k.Curve == elliptic.P224() {
			return nil, errors.New("TLS cannot use keys of the curve P-224: make one of P-256")
		}
		return k, nil
	case ed25519.PrivateKey:
		return k, nil
	}
	return nil, fmt.Errorf("TLS cannot use the key in %s: make an RSA or ECDSA key", privateKey)
}
