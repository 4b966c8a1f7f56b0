package mtls

import (
	"encoding/asn1"
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// attribute is one attribute of a distinguished name, in its ASN.1 encoding.
type attribute struct {
	Type  asn1.ObjectIdentifier
	Value asn1.RawValue
}

// attributesSET holds the attributes of one relative distinguished name. The suffix SET in the type name makes
// encoding/asn1 decode an ASN.1 SET.
type attributesSET []attribute

// nameOf formats a distinguished name according to RFC 2253, like OpenSSL and nginx: the last part comes first, and
// bytes other than printable ASCII are written in hexadecimal. It returns an empty string if raw is not a valid
// distinguished name.
func nameOf(raw []byte) string {
	var steps []attributesSET
	if rest, err := asn1.Unmarshal(raw, &steps); err != nil || len(rest) > 0 {
		return ""
	}
	var b strings.Builder
	for i := len(steps) - 1; i >= 0; i-- {
		for j := len(steps[i]) - 1; j >= 0; j-- {
			if b.Len() > 0 {
				b.WriteByte(separator(j < len(steps[i])-1))
			}
			steps[i][j].write(&b)
		}
	}
	return b.String()
}

func separator(sameStep bool) byte {
	if sameStep {
		return '+'
	}
	return ','
}

// shortNames maps the OIDs of attribute types to OpenSSL's short names.
var shortNames = map[string]string{
	"2.5.4.3": "CN", "2.5.4.4": "SN", "2.5.4.5": "serialNumber", "2.5.4.6": "C", "2.5.4.7": "L", "2.5.4.8": "ST",
	"2.5.4.9":  "street",
	"2.5.4.10": "O", "2.5.4.11": "OU", "2.5.4.12": "title", "2.5.4.13": "description", "2.5.4.15": "businessCategory",
	"2.5.4.16": "postalAddress", "2.5.4.17": "postalCode", "2.5.4.18": "postOfficeBox", "2.5.4.20": "telephoneNumber",
	"2.5.4.41": "name", "2.5.4.42": "GN", "2.5.4.43": "initials", "2.5.4.44": "generationQualifier",
	"2.5.4.45": "x500UniqueIdentifier",
	"2.5.4.46": "dnQualifier", "2.5.4.65": "pseudonym", "2.5.4.72": "role", "2.5.4.97": "organizationIdentifier",
	"1.2.840.113549.1.9.1": "emailAddress", "1.2.840.113549.1.9.2": "unstructuredName",
	"1.2.840.113549.1.9.8":      "unstructuredAddress",
	"0.9.2342.19200300.100.1.1": "UID", "0.9.2342.19200300.100.1.3": "mail", "0.9.2342.19200300.100.1.25": "DC",
	"1.3.6.1.4.1.311.60.2.1.1": "jurisdictionL", "1.3.6.1.4.1.311.60.2.1.2": "jurisdictionST",
	"1.3.6.1.4.1.311.60.2.1.3": "jurisdictionC",
}

func (a *attribute) write(b *strings.Builder) {
	oid := a.Type.String()
	name, known := shortNames[oid]
	if !known {
		name = oid
	}
	b.WriteString(name)
	b.WriteByte('=')
	text, readable := a.text()
	if !known || !readable {
		fmt.Fprintf(b, "#%X", a.Value.FullBytes)
		return
	}
	escape(b, text)
}

// The ASN.1 tags of string types that encoding/asn1 does not define.
const (
	tagUniversalString = 28
	tagVisibleString   = 26
)

// text decodes the value of an attribute, which may have any ASN.1 string type. Like OpenSSL, it decodes ASCII string
// types as Latin-1. It returns false for other types and for invalid values.
func (a *attribute) text() (string, bool) {
	data := a.Value.Bytes
	if a.Value.Class != asn1.ClassUniversal || a.Value.IsCompound {
		return "", false
	}
	switch a.Value.Tag {
	case asn1.TagUTF8String:
		return string(data), utf8.Valid(data)
	case asn1.TagPrintableString, asn1.TagIA5String, asn1.TagT61String, asn1.TagNumericString, tagVisibleString:
		runes := make([]rune, 0, len(data))
		for _, c := range data {
			runes = append(runes, rune(c))
		}
		return string(runes), true
	case asn1.TagBMPString:
		units := make([]uint16, 0, len(data)/2)
		for i := 0; i+1 < len(data); i += 2 {
			units = append(units, uint16(data[i])<<8|uint16(data[i+1]))
		}
		return string(utf16.Decode(units)), len(data)%2 == 0
	case tagUniversalString:
		runes := make([]rune, 0, len(data)/4)
		for i := 0; i+3 < len(data); i += 4 {
			runes = append(runes, rune(data[i])<<24|rune(data[i+1])<<16|rune(data[i+2])<<8|rune(data[i+3]))
		}
		return string(runes), len(data)%4 == 0
	}
	return "", false
}

// escape writes text with escapes, so that it contains no separators of distinguished names and no characters that are
// not allowed in a header field.
func escape(b *strings.Builder, text string) {
	for i := range len(text) {
		switch c := text[i]; {
		case c < ' ' || c > '~':
			fmt.Fprintf(b, "\\%02X", c)
		case strings.IndexByte(`,+"\<>;`, c) >= 0,
			c == '#' && i == 0, c == ' ' && (i == 0 || i == len(text)-1):
			b.WriteByte('\\')
			b.WriteByte(c)
		default:
			b.WriteByte(c)
		}
	}
}
