package basicauth

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

const sesame = "open sesame"

// hashes are hashes of the password sesame, made with crypt(3) and openssl.
var hashes = map[string]string{
	"bcrypt":          "$2y$04$abcdefghijklmnopqrstuu/LVz6MZlItEy42I2juLihZ66HnQx/cy",
	"bcrypt, b":       "$2b$04$abcdefghijklmnopqrstuu/LVz6MZlItEy42I2juLihZ66HnQx/cy",
	"apr1":            "$apr1$saltsalt$HIDXe7D36X22w1CH4M1cQ.",
	"MD5":             "$1$saltsalt$Yo6tRKYGO/jWyb1etwHDS/",
	"SHA-256":         "$5$saltsalt$yrhPKxCqiWcCE9h0g86j6Ugz7SDFdFm.BjU.d8RaQnC",
	"SHA-256 in 5000": "$5$rounds=5000$saltsalt$yrhPKxCqiWcCE9h0g86j6Ugz7SDFdFm.BjU.d8RaQnC",
	"SHA-512": "$6$saltsalt$e/5XKibXPLqVcfjpD.ouauaJrAOL5V0uo80Lt7n7EbR" +
		"dRiCx3HbQ90yjOHr.G0T.mx79PEMRy8nmtr0qSYhQp1",
	"SHA-512 in 1000": "$6$rounds=1000$saltsalt$/IiX/CoEcxCZ9SksEXnbjfCT1LGvD4z5OpJkaFYl/" +
		"T37OAwuKZ8I8BixDhruhPLkw6lS7dw/6wQWgQnGo7lLg/",
	"SHA":        "{SHA}W8r/fyL/UzygmbNAjq2HbA67qac=",
	"salted SHA": "{SSHA}hN5uxFJUEWCPg56kk42tnVCdJ61zYWx0",
	"DES":        "ab/G8gtZdMwak",
	"not hashed": "{PLAIN}" + sesame,
}

var users = ir.Users{Secret: ir.Name{Namespace: "shop", Name: "users"}}

// following returns a store in which one route refers to a user list, and that user list.
func following(t testing.TB, of ir.Users) (*Store, *Users) {
	t.Helper()
	s := NewStore()
	d := &document.Delta{Hosts: map[string]*document.Host{"shop.example": {Routes: []*document.Route{
		{Origin: "Ingress/shop/web", Destination: document.Destination{Users: []ir.Users{of}}},
	}}}}
	if added := s.Update(d); !slices.Equal(added, []ir.Name{of.Secret}) {
		t.Fatalf("added: %v", added)
	}
	if added := s.Update(d); len(added) > 0 {
		t.Fatalf("added again: %v", added)
	}
	return s, s.Users(of)
}

// file returns the data of a Secret with an htpasswd file.
func file(lines ...string) map[string][]byte {
	return map[string][]byte{"auth": []byte(strings.Join(lines, "\n"))}
}

func credentials(name, password string) string {
	return base64.StdEncoding.EncodeToString([]byte(name + ":" + password))
}

func (u *Users) try(t testing.TB, name, password string) error {
	t.Helper()
	return u.Verify(t.Context(), credentials(name, password))
}

func TestHashes(t *testing.T) {
	for name, hash := range hashes {
		t.Run(name, func(t *testing.T) {
			s, u := following(t, users)
			s.SetSecret(users.Secret, file("alice:"+hash), true)
			if err := u.try(t, "alice", sesame); err != nil {
				t.Error(err)
			}
			for _, wrong := range []string{"", "open", "Open sesame", hash,
				strings.TrimPrefix(hash, "{PLAIN}") + "\x00"} {
				if err := u.try(t, "alice", wrong); !errors.Is(err, ErrRefused) {
					t.Errorf("the password %q: %v", wrong, err)
				}
			}
			if problems := s.Problems(); len(problems) > 0 {
				t.Errorf("%+v", problems[0].Problems)
			}
		})
	}
}

// TestDESKnowsEightBytes checks that only the first eight bytes of a password are compared, as DES crypt does.
func TestDESKnowsEightBytes(t *testing.T) {
	s, u := following(t, users)
	s.SetSecret(users.Secret, file("alice:"+hashes["DES"]), true)
	if err := u.try(t, "alice", "open sesfoo"); err != nil {
		t.Error(err)
	}
	if err := u.try(t, "alice", "open sem"); !errors.Is(err, ErrRefused) {
		t.Error(err)
	}
}

func TestFile(t *testing.T) {
	s, u := following(t, users)
	s.SetSecret(users.Secret, file(
		"# a comment", "", "alice:{PLAIN}one:of the shop\r", "alice:{PLAIN}two", "bob:{PLAIN}", " carol:{PLAIN}three",
		"dan:{PLAIN}four "), true)
	for name, password := range map[string]string{"alice": "one", "bob": "", " carol": "three", "dan": "four "} {
		if err := u.try(t, name, password); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, password := range map[string]string{"alice": "two", "# a comment": "", "carol": "three",
		"dan": "four", "": ""} {
		if err := u.try(t, name, password); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestMap(t *testing.T) {
	asMap := ir.Users{Secret: users.Secret, Map: true}
	s, u := following(t, asMap)
	s.SetSecret(users.Secret, map[string][]byte{"alice": []byte(hashes["apr1"] + "\n"),
		"bob": []byte("{PLAIN}one\neve:{PLAIN}two")}, true)
	if err := u.try(t, "alice", sesame); err != nil {
		t.Error(err)
	}
	for name, password := range map[string]string{"bob": "one", "eve": "two"} {
		if err := u.try(t, name, password); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := problemLines(s); !strings.Contains(got, "1 of the keys (the value has several lines)") ||
		strings.Contains(got, "bob") {
		t.Error(got)
	}
}

func TestCredentials(t *testing.T) {
	s, u := following(t, users)
	s.SetSecret(users.Secret, file("alice:{PLAIN}one"), true)
	for _, text := range []string{
		"", "alice:one", base64.StdEncoding.EncodeToString([]byte("alice")), credentials("alice", "one") + "=",
		credentials("alice", "one")[1:],
		credentials("alice", "one") + "\n", credentials("alice", strings.Repeat("x", 2*maxCredentials)),
	} {
		if err := u.Verify(t.Context(), text); !errors.Is(err, ErrRefused) || u.Verified(text) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// costly is a password that matches any text, and counts the comparisons.
type costly struct{ compared *int }

func (c costly) MatchesPassword(string) bool {
	*c.compared++
	return true
}

// TestAnUnknownNameCostsAPassword checks that an unknown name causes a password comparison too, so that the response
// time does not show which names exist.
func TestAnUnknownNameCostsAPassword(t *testing.T) {
	compared := 0
	c := &contents{userList: &userList{passwords: map[string]password{"alice": {"", costly{&compared}}},
		order: []string{"alice"}}}
	c.init()
	for n, name := range []string{"bob", "", "alice"} {
		if got := c.matches(name, "one"); got != (name == "alice") || compared != n+1 {
			t.Errorf("%q: %v, after %d comparisons", name, got, compared)
		}
	}
}

// problemLines returns the problems that the store reports.
func problemLines(s *Store) string {
	var all []string
	for _, v := range s.Problems() {
		for _, p := range v.Problems {
			all = append(all, fmt.Sprintf("%s %s %s %s: %s", v.Object, p.Severity, p.Reason, p.Field, p.Message))
		}
	}
	return strings.Join(all, "\n")
}

// TestVerdicts checks the problem of each kind of Secret, and that the problem contains nothing of the Secret.
func TestVerdicts(t *testing.T) {
	const field = "metadata.annotations[nginx.ingress.kubernetes.io/auth-secret]: Secret shop/users"
	const closed = "; all requests to shop.example get 503 until it is valid"
	for name, c := range map[string]struct {
		data    map[string][]byte
		missing bool
		want    string
	}{
		"good": {data: file("alice:{PLAIN}one")},
		"missing": {missing: true, want: "error SecretNotFound " + field +
			" does not exist: all requests to shop.example get 503 until it is created"},
		"no file": {data: map[string][]byte{"alice": []byte("x")},
			want: "error InvalidUsers " + field + ": " + errNoFile.Error() + closed},
		"empty": {data: file(""), want: "error InvalidUsers " + field + ": the Secret contains no user" + closed},
		"garbage": {data: file("\x00\xff", ":x", "alice:secret"),
			want: "error InvalidUsers " + field + ": none of its users can be verified: line 1 (" +
				errNoColon.Error() + "), line 2 (" + errNoName.Error() + "), line 3 (" + errUnknownHash.Error() +
				")" + closed},
		"partly": {
			data: file("alice:{PLAIN}one", "bob:$2b$15$abcdefghijklmnopqrstuuTdv1NytlKc5gD0LbLGtiMSNX2AgG9m6",
				"carol:$6$rounds=200001$saltsalt$"+strings.Repeat("x", 86), "dan:$apr1$$x"),
			want: "warning InvalidUsers " + field + ": these users get 401 with any password: " +
				"line 2 (the bcrypt cost is 15, and the maximum is 14), " +
				"line 3 (the password hash has 200001 rounds, and 1000 to 200000 are allowed), line 4 " +
				"(" + errBrokenHash.Error() + ")",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, u := following(t, users)
			if got := problemLines(s); got != "" {
				t.Errorf("before it has been read: %s", got)
			}
			s.SetSecret(users.Secret, c.data, !c.missing)
			if got := strings.TrimPrefix(problemLines(s), "Ingress/shop/web "); got != c.want {
				t.Errorf("said\n%s, want\n%s", got, c.want)
			}
			if want := strings.HasPrefix(c.want, "error"); u.Available() == want {
				t.Errorf("available: %v", u.Available())
			}
		})
	}
}

// TestChanges checks all possible changes of a Secret.
func TestChanges(t *testing.T) {
	s, u := following(t, users)
	var changed []ir.Users
	s.OnChange(func(u ir.Users) { changed = append(changed, u) })
	expect := func(what string, want error, others bool) {
		t.Helper()
		if err := u.try(t, "alice", "one"); !errors.Is(err, want) {
			t.Errorf("%s: %v", what, err)
		}
		if got := u.Verified(credentials("alice", "one")); got != (want == nil) {
			t.Errorf("%s: verified: %v", what, got)
		}
		if got := len(changed) > 0; got != others {
			t.Errorf("%s: others get in: %v", what, got)
		}
		changed = nil
	}
	set := func(lines ...string) { s.SetSecret(users.Secret, file(lines...), true) }
	expect("not read", ErrUnavailable, false)
	set("alice:{PLAIN}one")
	expect("read", nil, false)
	set("alice:{PLAIN}one", "bob:{PLAIN}two")
	if u.Verified(credentials("alice", "one")) {
		t.Error("what was verified for another version of the Secret is remembered")
	}
	expect("one more", nil, false)
	set("alice:{PLAIN}one", "bob:{PLAIN}two")
	if !u.Verified(credentials("alice", "one")) {
		t.Error("what was verified is forgotten, though nothing has changed")
	}
	set("alice:{PLAIN}one")
	expect("one less", nil, true)
	set("alice:{PLAIN}two")
	expect("another password", ErrRefused, true)
	set("garbage")
	expect("garbage", ErrUnavailable, true)
	s.SetSecret(users.Secret, nil, false)
	expect("gone", ErrUnavailable, false)
	set("alice:{PLAIN}one")
	expect("restored", nil, false)
	s.Update(&document.Delta{Hosts: map[string]*document.Host{"shop.example": nil}})
	if s.Users(users).Available() {
		t.Error("users of a Secret that nothing refers to")
	}
}

// TestVerifiedIsBounded checks the limit of cached credentials. It is needed because DES crypt accepts many passwords
// for one hash.
func TestVerifiedIsBounded(t *testing.T) {
	s, u := following(t, users)
	s.SetSecret(users.Secret, file("alice:"+hashes["DES"]), true)
	c := u.contents.Load()
	for i := range maxVerified + 10 {
		c.keep(c.digest(fmt.Sprint(i)))
	}
	if n := len(c.sums); n != maxVerified {
		t.Errorf("%d are remembered", n)
	}
	if err := u.try(t, "alice", sesame); err != nil || !u.Verified(credentials("alice", sesame)) {
		t.Errorf("the last one is not remembered: %v", err)
	}
}

// TestGateTakesTurns checks that waiting verifications of one namespace do not delay another namespace, and that
// clients that have disconnected delay nothing.
func TestGateTakesTurns(t *testing.T) {
	g := newGate()
	var held []func()
	for range max(1, runtime.GOMAXPROCS(0)/2) {
		leave, err := g.enter(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, leave)
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	if _, err := g.enter(gone, "a"); !errors.Is(err, context.Canceled) {
		t.Errorf("somebody who has gone got in: %v", err)
	}
	var order []string
	var all sync.WaitGroup
	wait := func(namespace string) {
		waiting := func() int { g.mu.Lock(); defer g.mu.Unlock(); return g.queue.Len() }
		before := waiting()
		all.Go(func() {
			leave, err := g.enter(t.Context(), namespace)
			if err != nil {
				t.Error(err)
				return
			}
			g.mu.Lock()
			order = append(order, namespace)
			g.mu.Unlock()
			leave()
		})
		fixture.Eventually(t, "one more that waits", func() error {
			if waiting() == before {
				return errors.New("no further check waits")
			}
			return nil
		})
	}
	for _, namespace := range []string{"a", "a", "a", "b"} {
		wait(namespace)
	}
	held[0]()
	all.Wait()
	if i := slices.Index(order, "b"); i > 1 {
		t.Errorf("the order is %v", order)
	}
}

// whySkipped matches the only texts that may describe skipped users.
var whySkipped = func() *regexp.Regexp {
	reasons := `the bcrypt cost is \d\d, and the maximum is 14|` +
		`the password hash has \d+ rounds, and 1000 to 200000 are allowed`
	for _, err := range []error{errUnknownHash, errBrokenHash, errNoColon, errNoName, errLines} {
		reasons += "|" + regexp.QuoteMeta(err.Error())
	}
	one := `(line \d+|\d+ of the keys) \((` + reasons + `)\)`
	return regexp.MustCompile(`^(` + one + `(, ` + one + `)*( and \d+ more)?)?$`)
}()

// FuzzFile checks that no content of a Secret causes a panic or appears in a message.
func FuzzFile(f *testing.F) {
	for _, hash := range hashes {
		f.Add("alice:"+hash+"\nbob:"+hash[:len(hash)/2], sesame)
	}
	f.Add("a:$6$rounds=1000$$", "")
	f.Add("a:$2y$04$", "\x00")
	f.Fuzz(func(t *testing.T, text, password string) {
		for _, asMap := range []bool{false, true} {
			all, err := read(map[string][]byte{"auth": []byte(text)}, asMap)
			if err != nil {
				said := strings.TrimPrefix(err.Error(), "none of its users can be verified: ")
				if all != nil || !errors.Is(err, errNoUser) && !whySkipped.MatchString(said) {
					t.Errorf("%v, %v", all, err)
				}
				continue
			}
			if said := all.problems(); !whySkipped.MatchString(said) {
				t.Errorf("said: %q", said)
			}
			for _, known := range all.passwords {
				if !costs(known.hash) {
					known.MatchesPassword(password)
				}
			}
		}
	})
}

// costs reports whether a hash takes too long for a fuzz test.
func costs(hash string) bool {
	return strings.Contains(hash, "rounds=") || strings.HasPrefix(hash, "$2") && hash[4:6] > "04"
}

// TestTenant25GateIsBounded checks that password guessing in one namespace cannot make all client connections wait.
func TestTenant25GateIsBounded(t *testing.T) {
	g := newGate()
	for range max(1, runtime.GOMAXPROCS(0)/2) {
		if _, err := g.enter(t.Context(), "b"); err != nil {
			t.Fatal(err)
		}
	}
	ctx, leave := context.WithCancel(t.Context())
	var all sync.WaitGroup
	errRoom := errors.New("there is room")
	for range 2 * maxWaiting {
		all.Go(func() {
			if _, err := g.enter(ctx, "b"); !errors.Is(err, context.Canceled) && !errors.Is(err, ErrBusy) {
				t.Errorf("a verification that had to wait, and whose client has left: %v", err)
			}
		})
	}
	fixture.Eventually(t, "as many as may wait", func() error {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.waiting["b"] < maxWaiting {
			return errRoom
		}
		return nil
	})
	if _, err := g.enter(ctx, "b"); !errors.Is(err, ErrBusy) {
		t.Errorf("one more gets %v", err)
	}
	all.Go(func() {
		if _, err := g.enter(ctx, "a"); !errors.Is(err, context.Canceled) {
			t.Errorf("another namespace gets %v", err)
		}
	})
	fixture.Eventually(t, "another namespace waits", func() error {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.waiting["a"] == 0 {
			return errRoom
		}
		return nil
	})
	leave()
	all.Wait()
	if n := g.queue.Len(); n != 0 || g.waiting["a"] != 0 {
		t.Errorf("%d wait, and %v are counted", n, g.waiting)
	}
}
