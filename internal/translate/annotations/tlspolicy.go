package annotations

import (
	"fmt"
	"slices"
	"strings"

	"github.com/k8singress/k8singress/internal/model/nginx"
	"github.com/k8singress/k8singress/internal/model/option"
)

// The annotations for TLS handshakes.
var (
	sslCiphers = Annotation{
		Name: "ssl-ciphers",
		Doc: "The TLS 1.2 ciphers that clients may use for the hosts of the Ingress, by their OpenSSL names. The " +
			"order of the list has no effect. TLS 1.3 ciphers are always enabled, and ciphers without forward " +
			"secrecy are never enabled.\n\n" +
			"Only Ingresses in the namespace that [owns the host](tenants.md) can set the ciphers. If several of " +
			"these Ingresses have the annotation, the annotation of the oldest Ingress applies.",
		Values:  "colon-separated names: " + strings.Join(cipherNames(), ", "),
		Example: "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256",
		Default: "Caddy's default ciphers", Scope: ScopeIngress, Risk: RiskLow,
		Parse: nginx.Into(func(s *Settings) *[]string { return &s.TLS.Ciphers }, readCiphers),
	}
	sslPreferServerCiphers = Annotation{
		Name: "ssl-prefer-server-ciphers", Ignored: "the best cipher that the client and the controller both support " +
			"is always chosen",
		Risk: RiskLow,
	}
)

// ciphers lists the TLS 1.2 cipher suites that Go considers secure, with their OpenSSL and IANA names. Suites with
// finite-field Diffie-Hellman are missing, because Go does not support them.
var ciphers = []struct{ openssl, iana string }{
	{"ECDHE-ECDSA-AES128-GCM-SHA256", "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"},
	{"ECDHE-RSA-AES128-GCM-SHA256", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"},
	{"ECDHE-ECDSA-AES256-GCM-SHA384", "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"},
	{"ECDHE-RSA-AES256-GCM-SHA384", "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"},
	{"ECDHE-ECDSA-CHACHA20-POLY1305", "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"},
	{"ECDHE-RSA-CHACHA20-POLY1305", "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256"},
	{"ECDHE-ECDSA-AES128-SHA", "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA"},
	{"ECDHE-RSA-AES128-SHA", "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA"},
	{"ECDHE-ECDSA-AES256-SHA", "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA"},
	{"ECDHE-RSA-AES256-SHA", "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA"},
}

func cipherNames() []string {
	var names []string
	for _, c := range ciphers {
		names = append(names, c.openssl)
	}
	return names
}

// These ciphers are not supported by this controller. The annotation ssl-ciphers may exclude them with a leading "!".
// This causes no warning, because it changes nothing.
var never = []string{
	"aNULL", "eNULL", "NULL", "EXPORT", "EXP", "LOW", "MEDIUM", "DES", "3DES", "RC4", "MD5", "PSK", "SRP", "DSS",
	"aDSS", "ADH", "AECDH", "CAMELLIA",
	"SEED", "IDEA", "kRSA", "DH", "DHE", "EDH", "ARIA", "CBC3",
}

// cipherChars are the characters that OpenSSL cipher lists may contain besides letters and digits.
const cipherChars = "-_!+@=: ,"

// usual is the list of the OpenSSL keywords that select Caddy's default ciphers.
var usual = []string{"DEFAULT", "HIGH", "ALL", "ECDHE", "EECDH", "kECDHE", "kEECDH"}

// readCiphers parses an OpenSSL cipher list. It returns nil if the list contains a keyword for the default ciphers.
// Unknown ciphers are ignored, and the returned error lists them. A list without any supported cipher is invalid.
func readCiphers(value string) ([]string, error) {
	if _, err := nginx.Chars(cipherChars, option.MaxBytes)(value); err != nil {
		return nil, err
	}
	var known, unknown []string
	words := strings.FieldsFunc(value, func(r rune) bool { return strings.ContainsRune(": ,", r) })
	if slices.ContainsFunc(words, func(word string) bool { return slices.Contains(usual, word) }) {
		return nil, nil
	}
	for _, word := range words {
		excluded, isExcluded := strings.CutPrefix(word, "!")
		switch i := slices.IndexFunc(ciphers,
			func(c struct{ openssl, iana string }) bool { return c.openssl == word }); {
		case i >= 0:
			known = append(known, ciphers[i].iana)
		case isExcluded && slices.Contains(never, excluded):
		default:
			unknown = append(unknown, word)
		}
	}
	slices.Sort(known)
	known = slices.Compact(known)
	list := nginx.Quote(strings.Join(unknown, ":"))
	switch {
	case len(known) == 0:
		return nil, fmt.Errorf("%s contains no supported TLS 1.2 cipher, and has no effect: write one or more of %s",
			nginx.Quote(value), strings.Join(cipherNames(), ", "))
	case len(unknown) > 0:
		return known, nginx.Remark("these ciphers are ignored, because Go does not support them or cannot select " +
			"them: " + list)
	}
	return known, nil
}
