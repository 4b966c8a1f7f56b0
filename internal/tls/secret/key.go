package secret

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

// The minimum and maximum length of RSA keys, in bits. crypto/tls rejects handshakes with shorter keys. Clients that
// use crypto/tls reject longer keys; a handshake with such a key would also take as long as a hundred other handshakes.
const (
	minRSA = 1024
	maxRSA = 8192
	// maxKey is the maximum size in bytes of a private key in PEM format. An RSA key of maxRSA bits is smaller. The
	// size is checked before the key is parsed, because parsing a key of several megabytes takes too long.
	maxKey = 8 << 10
)

var errUnusable = errors.New("TLS cannot use the key in " + PrivateKey + ": make an RSA or ECDSA key")

// readKey returns the first private key in PEM data. As in crypto/tls, other PEM blocks before the key are skipped,
// such as the EC PARAMETERS block that openssl writes.
func readKey(data []byte) (crypto.Signer, error) {
	block, rest := pem.Decode(data)
	if block == nil {
		return nil, fmt.Errorf("%s has no PEM block", PrivateKey)
	}
	for ; block != nil; block, rest = pem.Decode(rest) {
		if !strings.HasSuffix(block.Type, "PRIVATE KEY") {
			continue
		}
		if block.Type == "ENCRYPTED PRIVATE KEY" || strings.Contains(block.Headers["Proc-Type"], "ENCRYPTED") {
			return nil, fmt.Errorf("the key in %s is encrypted: store it without a passphrase", PrivateKey)
		}
		return parseKey(block)
	}
	return nil, fmt.Errorf("%s has no private key in PEM", PrivateKey)
}

func parseKey(block *pem.Block) (crypto.Signer, error) {
	if len(block.Bytes) > maxKey {
		return nil, fmt.Errorf("the key in %s is too long: use an RSA key of at most %d bits, or an ECDSA key",
			PrivateKey, maxRSA)
	}
	var key any
	var err error
	switch block.Type {
	case "DSA PRIVATE KEY", "OPENSSH PRIVATE KEY":
		return nil, errUnusable
	case "RSA PRIVATE KEY":
		key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	case "EC PRIVATE KEY":
		key, err = x509.ParseECPrivateKey(block.Bytes)
	default:
		key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	}
	if err != nil {
		return nil, fmt.Errorf("the key in %s cannot be read: %w", PrivateKey, err)
	}
	return usable(key)
}

// usable returns key as a signer if it can be used for TLS handshakes. It returns an error if every handshake would
// fail because of the type or the size of the key.
func usable(key any) (crypto.Signer, error) {
	switch k := key.(type) {
	case *rsa.PrivateKey:
		switch bits := k.N.BitLen(); {
		case bits < minRSA:
			return nil, fmt.Errorf("the RSA key has %d bits, and TLS needs at least %d", bits, minRSA)
		case bits > maxRSA:
			return nil,
				fmt.Errorf("the RSA key has %d bits, and clients accept at most %d: each handshake would be slow",
					bits, maxRSA)
		}
		return k, nil
	case *ecdsa.PrivateKey:
		if k.Curve == elliptic.P224() {
			return nil, errors.New("TLS does not support keys with the curve P-224: create a key with the curve P-256")
		}
		return k, nil
	case ed25519.PrivateKey:
		return k, nil
	}
	return nil, errUnusable
}
