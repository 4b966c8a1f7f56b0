package tlssecret

import (
	"crypto/sha256"
	"crypto/x509"
	"fmt"
	"time"
)

// Validity is where a moment stands to the time that a certificate is valid for.
type Validity int

// What a certificate may be at a moment.
const (
	NotYetValid Validity = iota
	Valid
	Expired
)

// Period is the time that a certificate is valid for. The zero value, which stands for no certificate, has no end.
type Period struct{ From, Until time.Time }

// PeriodOf returns that of a certificate.
func PeriodOf(c *x509.Certificate) Period { return Period{c.NotBefore, c.NotAfter} }

// At returns the validity at a moment.
func (p *Period) At(t time.Time) Validity {
	switch {
	case p.Until.IsZero():
		return Valid
	case t.Before(p.From):
		return NotYetValid
	case t.After(p.Until):
		return Expired
	}
	return Valid
}

// Sum returns a checksum of parts of a Secret, by which a reader knows without a copy that they are the same as before.
func Sum(parts ...[]byte) (sum [sha256.Size]byte) {
	h := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(h, "%d ", len(part))
		h.Write(part)
	}
	h.Sum(sum[:0])
	return sum
}
