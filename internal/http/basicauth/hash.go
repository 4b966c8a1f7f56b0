package basicauth

import (
	"crypto/subtle"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/sergeymakinen/go-crypt/des"
	"github.com/tg123/go-htpasswd"
	"golang.org/x/crypto/bcrypt"
)

// Limits on the cost of verifying a hash. Without them, the author of a Secret could choose a hash that takes minutes
// to verify for each wrong password.
const (
	maxBcryptCost = 14
	maxSHARounds  = 200_000
	minSHARounds  = 1000
)

// desPassword is the number of bytes of a password that DES crypt uses. It ignores the rest.
const desPassword = 8

// scheme is one format of password hashes in htpasswd files.
type scheme struct {
	// prefix is the start of all hashes in this format. form matches all valid hashes; other hashes are rejected,
	// because the libraries accept some hashes that they cannot verify.
	prefix string
	form   *regexp.Regexp
	read   htpasswd.PasswdParser
}

// schemes are the password formats that nginx supports. The last scheme has an empty prefix, so that it matches all
// passwords that no other scheme matches.
var schemes = []scheme{
	{"$2", regexp.MustCompile(`^\$2[aby]\$\d\d\$[./0-9A-Za-z]{53}$`), readBcrypt},
	{"$apr1$", regexp.MustCompile(`^\$apr1\$[^$:\s]{1,8}\$[./0-9A-Za-z]{22}$`), htpasswd.AcceptMd5},
	{"$1$", regexp.MustCompile(`^\$1\$[^$:\s]{1,8}\$[./0-9A-Za-z]{22}$`), htpasswd.AcceptMd5},
	{"$5$", regexp.MustCompile(`^\$5\$(rounds=[1-9]\d{0,8}\$)?[^$:=\s]{1,16}\$[./0-9A-Za-z]{43}$`), readSHACrypt},
	{"$6$", regexp.MustCompile(`^\$6\$(rounds=[1-9]\d{0,8}\$)?[^$:=\s]{1,16}\$[./0-9A-Za-z]{86}$`), readSHACrypt},
	{"{SHA}", regexp.MustCompile(`^\{SHA\}[+/0-9A-Za-z]{27}=$`), htpasswd.AcceptSha},
	{"{SSHA}", regexp.MustCompile(`^\{SSHA\}[+/0-9A-Za-z]{28,}={0,2}$`), htpasswd.AcceptSsha},
	{"{PLAIN}", regexp.MustCompile(`^\{PLAIN\}.*$`), readPlain},
	{"", regexp.MustCompile(`^[./0-9A-Za-z]{13}$`), readDES},
}

// The texts of these errors must not contain the hash.
var (
	errUnknownHash = errors.New("the password hash has an unknown format: use a supported format, such as bcrypt")
	errBrokenHash  = errors.New("the password hash is incomplete or contains invalid characters")
)

// readHash parses the password field of a line in an htpasswd file.
func readHash(text string) (htpasswd.EncodedPasswd, error) {
	i := slices.IndexFunc(schemes, func(s scheme) bool { return strings.HasPrefix(text, s.prefix) })
	s := &schemes[i]
	switch {
	case s.form.MatchString(text):
	case s.prefix == "":
		return nil, errUnknownHash
	default:
		return nil, errBrokenHash
	}
	password, err := s.read(text)
	if costly := costError(""); errors.As(err, &costly) {
		return nil, costly
	}
	if err != nil || password == nil {
		// The library's error is not returned, because its text contains the hash.
		return nil, errBrokenHash
	}
	return password, nil
}

// costError is the error for a hash that would take too long to verify.
type costError string

func (e costError) Error() string { return string(e) }

func readBcrypt(text string) (htpasswd.EncodedPasswd, error) {
	cost, err := bcrypt.Cost([]byte(text))
	if err == nil && cost > maxBcryptCost {
		return nil, costError(fmt.Sprintf("the bcrypt cost is %d, and the maximum is %d", cost, maxBcryptCost))
	}
	if err != nil {
		return nil, err
	}
	return htpasswd.AcceptBcrypt(text)
}

func readSHACrypt(text string) (htpasswd.EncodedPasswd, error) {
	if _, rest, ok := strings.Cut(text, "$rounds="); ok {
		digits, _, _ := strings.Cut(rest, "$")
		rounds, err := strconv.Atoi(digits)
		if err != nil {
			return nil, err
		}
		if rounds < minSHARounds || rounds > maxSHARounds {
			return nil, costError(fmt.Sprintf("the password hash has %d rounds, and %d to %d are allowed", rounds,
				minSHARounds, maxSHARounds))
		}
	}
	return htpasswd.AcceptCryptSha(text)
}

// plain is a password that is stored in plain text.
type plain string

func readPlain(text string) (htpasswd.EncodedPasswd, error) {
	return plain(strings.TrimPrefix(text, "{PLAIN}")), nil
}

// MatchesPassword implements htpasswd.EncodedPasswd.
func (p plain) MatchesPassword(password string) bool {
	return subtle.ConstantTimeCompare([]byte(p), []byte(password)) == 1
}

// desHash is a password hash of DES crypt, the oldest crypt(3) format.
type desHash string

func readDES(text string) (htpasswd.EncodedPasswd, error) { return desHash(text), nil }

// MatchesPassword implements htpasswd.EncodedPasswd.
func (h desHash) MatchesPassword(password string) bool {
	return des.Check(string(h), password[:min(len(password), desPassword)]) == nil
}
