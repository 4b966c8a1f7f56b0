package basicauth

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tg123/go-htpasswd"

	"github.com/k8singress/k8singress/internal/model/report"
)

// fileKey is the key in the Secret's data that contains the htpasswd file.
const fileKey = "auth"

// userList holds the users of a Secret, except users whose password hash cannot be parsed.
type userList struct {
	passwords map[string]password
	// order holds the sorted user names.
	order []string
	// bad describes why some users were skipped, without their names and passwords. skipped is the number of skipped
	// users.
	bad     []string
	skipped int
}

// password is a user's password hash, as stored in the Secret and in parsed form.
type password struct {
	hash string
	htpasswd.EncodedPasswd
}

var (
	errNoFile = errors.New("there is no key " + fileKey +
		": put an htpasswd file there, or set auth-secret-type to auth-map if the Secret has one key for each user")
	errNoUser  = errors.New("the Secret contains no user")
	errNoColon = errors.New("the line has no colon: write each user as NAME:HASH")
	errNoName  = errors.New("the line has no name before the colon")
	errLines   = errors.New("the value has several lines")
)

// read parses the users in the data of a Secret. asMap is true if the Secret has one key for each user. read returns an
// error if the Secret contains no valid user.
func read(data map[string][]byte, asMap bool) (*userList, error) {
	p := &userList{passwords: map[string]password{}}
	if asMap {
		p.readMap(data)
	} else {
		file, ok := data[fileKey]
		if !ok {
			return nil, errNoFile
		}
		p.readFile(file)
	}
	p.order = slices.Sorted(maps.Keys(p.passwords))
	switch {
	case len(p.order) > 0:
		return p, nil
	case p.skipped > 0:
		return nil, fmt.Errorf("none of its users can be verified: %s", p.problems())
	}
	return nil, errNoUser
}

// problems returns a message that lists why users were skipped.
func (p *userList) problems() string { return report.List(p.bad, p.skipped, report.MaxListed) }

// readFile parses an htpasswd file as nginx does: lines that begin with # are comments, and anything after a second
// colon in a line is ignored. If several lines have the same user name, the first line is used.
func (p *userList) readFile(file []byte) {
	number := 0
	seen := map[string]bool{}
	for line := range bytes.Lines(file) {
		number++
		text := strings.TrimRight(string(line), "\r\n")
		if strings.TrimSpace(text) == "" || text[0] == '#' {
			continue
		}
		name, hash, ok := strings.Cut(text, ":")
		hash, _, _ = strings.Cut(hash, ":")
		err := errNoColon
		switch {
		case ok && name == "":
			err = errNoName
		case ok && seen[name]:
			continue
		case ok:
			seen[name] = true
			err = p.add(name, hash)
		}
		if err != nil {
			p.skip(fmt.Sprintf("line %d (%v)", number, err))
		}
	}
}

// readMap parses a Secret that has one key for each user. The reported problems contain only the number of users that
// were skipped, because user names are confidential.
func (p *userList) readMap(data map[string][]byte) {
	reasons := map[string]int{}
	for name, value := range data {
		hash, _, _ := strings.Cut(strings.TrimSpace(string(value)), ":")
		err := errLines
		if !strings.ContainsAny(hash, "\r\n") {
			err = p.add(name, hash)
		}
		if err != nil {
			reasons[err.Error()]++
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(reasons)) {
		p.bad = append(p.bad, fmt.Sprintf("%d of the keys (%s)", reasons[reason], reason))
	}
	p.skipped = len(p.bad)
}

func (p *userList) add(name, hash string) error {
	compared, err := readHash(hash)
	if err == nil {
		p.passwords[name] = password{hash, compared}
	}
	return err
}

func (p *userList) skip(why string) {
	if p.skipped++; len(p.bad) < report.MaxListed {
		p.bad = append(p.bad, why)
	}
}
