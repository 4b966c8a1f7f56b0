package storage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddyserver/certmagic"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

func isAbsent(err error) bool { return errors.Is(err, fs.ErrNotExist) }

const issuer = "acme-v02.api.example-directory"

var (
	crt  = certmagic.StorageKeys.SiteCert(issuer, "a.example")
	key  = certmagic.StorageKeys.SitePrivateKey(issuer, "a.example")
	info = certmagic.StorageKeys.SiteMeta(issuer, "a.example")
)

// both runs a check three times: with the process that wrote, before and after the watch events of its writes arrive,
// and with another process.
func both(t *testing.T, w *world, writer *process, check func(t *testing.T, p *process)) {
	t.Helper()
	other := w.start(t)
	t.Run("writer", func(t *testing.T) { check(t, writer) })
	t.Run("other", func(t *testing.T) { check(t, other) })
	t.Run("writer after the watch events", func(t *testing.T) {
		writer.awaitOwnWrites(t)
		check(t, writer)
	})
}

func TestValues(t *testing.T) {
	w := newWorld(t)
	p := w.start(t)
	store(t, p, "a/b", "1", "a/c", "2", "ab/d", "3", "a/c", "new", "/slash/", "4", "x/../dots", "5")
	if err := p.Store(t.Context(), "empty", nil); err != nil {
		t.Fatal(err)
	}
	both(t, w, p, func(t *testing.T, p *process) {
		for key, want := range map[string]string{"a/b": "1", "a/c": "new", "ab/d": "3", "slash": "4", "/a//c/": "new",
			"dots": "5"} {
			if got := has(t, p, key); got != want {
				t.Errorf("%s is %q, want %q", key, got, want)
			}
		}
		if value, err := p.Load(t.Context(), "empty"); err != nil || value == nil || len(value) > 0 {
			t.Errorf("the empty value is %v, %v", value, err)
		}
		for _, key := range []string{"a", "a/", "a/b/c", "ab", "none", "a/bb"} {
			if value, err := p.Load(t.Context(), key); !isAbsent(err) {
				t.Errorf("%s is %q, %v", key, value, err)
			}
		}
	})
}

func TestValuesAreCopied(t *testing.T) {
	w := newWorld(t)
	p := w.start(t)
	mine := []byte("original")
	if err := p.Store(t.Context(), "a", mine); err != nil {
		t.Fatal(err)
	}
	mine[0] = 'X'
	loaded, err := p.Load(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	loaded[1] = 'X'
	if got := has(t, p, "a"); got != "original" {
		t.Errorf("the value is %q", got)
	}
}

func TestExistsAndStat(t *testing.T) {
	w := newWorld(t)
	p := w.start(t)
	begin := time.Now().Add(-time.Second)
	store(t, p, "a/b", "12345", crt, "certificate")
	both(t, w, p, func(t *testing.T, p *process) {
		for key, want := range map[string]certmagic.KeyInfo{
			"a/b":                           {Key: "a/b", Size: 5, IsTerminal: true},
			"a":                             {Key: "a"},
			crt:                             {Key: crt, Size: 11, IsTerminal: true},
			"certificates":                  {Key: "certificates"},
			strings.TrimSuffix(crt, ".crt"): {},
			key:                             {},
			"a/b/c":                         {},
			"none":                          {},
		} {
			got, err := p.Stat(t.Context(), key)
			if want.Key == "" {
				if !isAbsent(err) || p.Exists(t.Context(), key) {
					t.Errorf("%s is %+v, %v", key, got, err)
				}
				continue
			}
			if want.IsTerminal && (got.Modified.Before(begin) || got.Modified.After(time.Now().Add(time.Second))) {
				t.Errorf("%s is of %v", key, got.Modified)
			}
			got.Modified = time.Time{}
			if err != nil || got != want || !p.Exists(t.Context(), key) {
				t.Errorf("%s is %+v, %v, want %+v", key, got, err, want)
			}
		}
	})
}

func TestList(t *testing.T) {
	w := newWorld(t)
	p := w.start(t)
	all := []string{"a/b/c", "a/b-c", "a/b.d/e", "a/x", "a/x/y/z", "ab/c", "top", crt, key}
	for _, key := range all {
		store(t, p, key, "value")
	}
	site := strings.TrimSuffix(crt, "/a.example.crt")
	cases := []struct {
		folder    string
		recursive bool
		want      []string
	}{
		{"", false, []string{"a", "ab", "certificates", "top"}},
		{"a", false, []string{"a/b", "a/b-c", "a/b.d", "a/x"}},
		{"/a/", false, []string{"a/b", "a/b-c", "a/b.d", "a/x"}},
		{"a", true, []string{"a/b", "a/b-c", "a/b.d", "a/b.d/e", "a/b/c", "a/x", "a/x/y", "a/x/y/z"}},
		{"a/x", true, []string{"a/x/y", "a/x/y/z"}},
		{"ab", false, []string{"ab/c"}},
		{"top", true, nil},
		{site, false, []string{crt, key}},
		{"certificates", false, []string{"certificates/" + issuer}},
		{"certificates", true, []string{"certificates/" + issuer, site, crt, key}},
	}
	both(t, w, p, func(t *testing.T, p *process) {
		for _, c := range cases {
			got, err := p.List(t.Context(), c.folder, c.recursive)
			if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
				t.Errorf("%q, recursive %v: %v (-want +got):\n%s", c.folder, c.recursive, err, diff)
			}
		}
		for _, folder := range []string{"none", "a/b/", "a/b/d", "to"} {
			if folder == "a/b/" {
				continue
			}
			if got, err := p.List(t.Context(), folder, true); !isAbsent(err) {
				t.Errorf("%s has %v, %v", folder, got, err)
			}
		}
	})
}

func TestListOfAnEmptyStorage(t *testing.T) {
	p := newWorld(t).start(t)
	if got, err := p.List(t.Context(), "", true); len(got) > 0 || err != nil {
		t.Errorf("it has %v, %v", got, err)
	}
}

func TestDelete(t *testing.T) {
	w := newWorld(t)
	p := w.start(t)
	store(t, p, "a/b", "1", "a/b/c", "2", "a/bc", "3", "b/1", "4", "b/2/3", "5", "c", "6", crt, "7", key,
		"8", info, "9")
	for _, key := range []string{"a/b", "b", "c", "none", "none/at/all", "c",
		certmagic.StorageKeys.CertsPrefix(issuer)} {
		if err := p.Delete(t.Context(), key); err != nil {
			t.Errorf("deleting %s: %v", key, err)
		}
	}
	both(t, w, p, func(t *testing.T, p *process) {
		if got, err := p.List(t.Context(), "", true); err != nil || !slices.Equal(got, []string{"a", "a/bc"}) {
			t.Errorf("left over: %v, %v", got, err)
		}
	})
	if left := w.secrets(t); len(left) != 1 {
		t.Errorf("%d Secrets are left over", len(left))
	}
	store(t, p, "c", "again")
	both(t, w, p, func(t *testing.T, p *process) {
		if got := has(t, p, "c"); got != "again" {
			t.Errorf("c is %q", got)
		}
	})
	if err := p.Delete(t.Context(), ""); err == nil {
		t.Error("everything was deleted at once")
	}
}

// TestDeleteBeforeTheWatchEvent checks that a process can delete a value that its watch has not reported yet.
func TestDeleteBeforeTheWatchEvent(t *testing.T) {
	w := newSimulated(t)
	writer, other := w.start(t), w.start(t)
	if other.Exists(t.Context(), "a") {
		t.Fatal("it is there")
	}
	defer w.api.hold()()
	store(t, writer, "a", "1")
	if err := other.Delete(t.Context(), "a"); err != nil || len(w.secrets(t)) > 0 {
		t.Errorf("error %v, Secrets %v", err, w.secrets(t))
	}
}

// TestSite checks that the keys of a site can be written in any order and are stored in one Secret that other programs
// can use.
func TestSite(t *testing.T) {
	parts := map[string]string{key: "the key", crt: "the certificate", info: "{}"}
	for _, order := range [][]string{{key, crt, info}, {crt, key, info}, {info, key, crt}} {
		t.Run(order[0][len(order[0])-3:], func(t *testing.T) {
			w := newWorld(t)
			p := w.start(t)
			for i, one := range order {
				store(t, p, one, parts[one])
				if secrets := w.secrets(t); len(secrets) != 1 {
					t.Fatalf("there are %d Secrets", len(secrets))
				}
				for j, other := range order {
					if got, want := has(t, p, other), map[bool]string{true: parts[other]}[j <= i]; got != want {
						t.Errorf("after %d writes, %s is %q, want %q", i+1, other, got, want)
					}
				}
			}
			secret := w.secrets(t)[0]
			if secret.Type != corev1.SecretTypeTLS || string(secret.Data["tls.crt"]) != parts[crt] ||
				string(secret.Data["tls.key"]) != parts[key] {
				t.Errorf("the Secret is of type %s, with %v", secret.Type, secret.Data)
			}
			for i, one := range order {
				if err := p.Delete(t.Context(), one); err != nil || has(t, p, one) != "" {
					t.Errorf("deleting %s: %v", one, err)
				}
				if secrets := w.secrets(t); len(secrets) != map[bool]int{true: 1}[i < 2] {
					t.Errorf("after %d deletions there are %d Secrets", i+1, len(secrets))
				}
			}
		})
	}
}

func TestOtherKeysOfASite(t *testing.T) {
	w := newWorld(t)
	p := w.start(t)
	folder := strings.TrimSuffix(crt, "/a.example.crt")
	store(t, p, crt, "1", folder+"/other.crt", "2", folder+"/a.example.key.compromised", "3", folder, "4")
	if secrets := w.secrets(t); len(secrets) != 4 {
		t.Errorf("there are %d Secrets", len(secrets))
	}
	both(t, w, p, func(t *testing.T, p *process) {
		others := has(t, p, folder+"/other.crt") + has(t, p, folder+"/a.example.key.compromised")
		if got := has(t, p, crt) + others + has(t, p, folder); got != "1234" {
			t.Errorf("they are %q", got)
		}
	})
}

// TestWritersAtOnce checks that concurrent writes of several processes to the same Secret do not lose a part of a site.
func TestWritersAtOnce(t *testing.T) {
	w := newWorld(t)
	processes := []*process{w.start(t), w.start(t), w.start(t)}
	var group sync.WaitGroup
	for i, one := range []string{crt, key, info} {
		group.Go(func() {
			for n := range 5 {
				if err := processes[i].Store(t.Context(), one, fmt.Appendf(nil, "%d", n)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	for i, one := range []string{crt, key, info} {
		if got := has(t, processes[i], one); got != "4" {
			t.Errorf("%s is %q", one, got)
		}
		fixture.Holds(t, "the news of "+one, func() bool { return has(t, processes[(i+1)%3], one) == "4" })
	}
}

func TestTooLarge(t *testing.T) {
	w := newWorld(t)
	p := w.start(t)
	if err := p.Store(t.Context(), "large", make([]byte, corev1.MaxSecretSize)); err != nil {
		t.Errorf("a value of 1 MiB: %v", err)
	}
	if err := p.Store(t.Context(), "larger", make([]byte, corev1.MaxSecretSize+1)); err == nil ||
		!strings.Contains(err.Error(), "too large") {
		t.Errorf("a larger one: %v", err)
	}
	store(t, p, crt, "small")
	if err := p.Store(t.Context(), key, make([]byte, corev1.MaxSecretSize)); err == nil ||
		!strings.Contains(err.Error(), "too large") {
		t.Errorf("two that are together too large: %v", err)
	}
	if got := has(t, p, crt) + has(t, p, key); got != "small" {
		t.Errorf("the site has %.20q", got)
	}
}

func TestBadKeys(t *testing.T) {
	p := newWorld(t).start(t)
	for _, bad := range []string{"", "/", "..", "\xff", strings.Repeat("a", 5000)} {
		if err := p.Store(t.Context(), bad, []byte("x")); err == nil {
			t.Errorf("%.20q was stored", bad)
		}
		if _, err := p.Load(t.Context(), bad); err == nil {
			t.Errorf("%.20q was loaded", bad)
		}
	}
	odd := []string{"a b", "ünïcode/日本", "UPPER", "a/-", "...", strings.Repeat("long/", 800) + "x",
		"new\nline", "{env.HOME}"}
	for i, key := range odd {
		store(t, p, key, fmt.Sprint("v", i))
	}
	for i, key := range odd {
		if got := has(t, p, key); got != fmt.Sprint("v", i) {
			t.Errorf("%.20q is %q", key, got)
		}
	}
}

// TestForeignSecrets checks that the storage neither reads nor changes a Secret without the label of the storage.
func TestForeignSecrets(t *testing.T) {
	w := newWorld(t)
	foreign := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: placeOf("a").secret, Annotations: map[string]string{keyAnnotation: "a"}},
		Data:       map[string][]byte{"value": []byte("foreign")},
	}
	if _, err := w.admin.CoreV1().Secrets(w.namespace).Create(t.Context(), foreign,
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	p := w.start(t)
	if got := has(t, p, "a"); got != "" {
		t.Errorf("a is %q", got)
	}
	for what, err := range map[string]error{"Store": p.Store(t.Context(), "a", []byte("1")),
		"Delete": p.Delete(t.Context(), "a")} {
		if err == nil || !strings.Contains(err.Error(), "does not belong to this storage") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if secrets := w.secrets(t); len(secrets) != 1 || !bytes.Equal(secrets[0].Data["value"], []byte("foreign")) {
		t.Errorf("the Secrets are %v", secrets)
	}
}

// TestMisplacedSecrets checks that a Secret that has the label, but a name that does not fit its key, is ignored and
// does not hide the right Secret.
func TestMisplacedSecrets(t *testing.T) {
	w := newWorld(t)
	p := w.start(t)
	store(t, p, "a", "right")
	copied := w.secrets(t)[0]
	copied.ObjectMeta = metav1.ObjectMeta{Name: "copy", Labels: copied.Labels, Annotations: copied.Annotations}
	copied.Data["value"] = []byte("wrong")
	if _, err := w.admin.CoreV1().Secrets(w.namespace).Create(t.Context(), &copied,
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	other := w.start(t)
	fixture.Holds(t, "a warning", func() bool {
		return other.log.FilterMessage(
			"ignored a Secret that has the label of the storage but does not belong to it").Len() > 0
	})
	if got := has(t, other, "a"); got != "right" {
		t.Errorf("a is %q", got)
	}
}

func TestContext(t *testing.T) {
	w := newWorld(t)
	p := w.start(t)
	store(t, p, "a", "1")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, load := p.Load(ctx, "a")
	_, list := p.List(ctx, "", true)
	_, stat := p.Stat(ctx, "a")
	_, try := p.TryLock(ctx, "a")
	for what, err := range map[string]error{
		"Load": load, "List": list, "Stat": stat, "Store": p.Store(ctx, "a", []byte("2")), "Delete": p.Delete(ctx, "a"),
		"Lock": p.Lock(ctx, "a"), "TryLock": try,
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if got := has(t, p, "a"); got != "1" || p.Exists(ctx, "a") {
		t.Errorf("a is %q", got)
	}
}

func TestSubscribe(t *testing.T) {
	w := newWorld(t)
	writer, other := w.start(t), w.start(t)
	news := make(chan string, 100)
	cancel := other.Subscribe(func(key string) { news <- key })
	expect := func(want string) {
		t.Helper()
		select {
		case got := <-news:
			if got != want {
				t.Errorf("news of %s, want %s", got, want)
			}
		case <-time.After(limit):
			t.Fatalf("no news of %s", want)
		}
	}
	store(t, writer, crt, "1")
	expect(crt)
	store(t, writer, "a", "1")
	expect("a")
	// The certificate in the same Secret does not change, so its key is not reported.
	store(t, writer, key, "1")
	expect(key)
	if err := writer.Delete(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	expect("a")
	store(t, other, "b", "1")
	expect("b")
	cancel()
	store(t, other, "c", "1")
	fixture.Holds(t, "c", func() bool { return has(t, other, "c") == "1" })
	if len(news) > 0 {
		t.Errorf("news after the end: %s", <-news)
	}
}
