package storage

import (
	"maps"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

// history simulates an API server whose watch events arrive late.
type history struct {
	x *secretCache
	// now is the current state of the API server. log lists all changes; a change with a nil state is a deletion.
	now map[string]*corev1.Secret
	log []happened
	// heard is the number of changes that the watch has reported.
	heard int
	// mine contains the names of the Secrets whose last change was made by the process itself.
	mine map[string]bool
}

type happened struct {
	name  string
	state *corev1.Secret
}

// version returns the version of the API server after a number of changes. It is never 0.
func version(changes int) string { return strconv.Itoa(changes + 1) }

var somewhere = []string{"a", "b", "certificates/i/d/d.crt", "certificates/i/d/d.key"}

// write changes a key at the API server and returns the states before and after.
func (h *history) write(t *rapid.T, key, value string) (before, after *corev1.Secret) {
	p := placeOf(key)
	before = h.now[p.secret]
	after, err := p.with(before, []byte(value))
	if value == "" {
		after, err = without(before, key), nil
	}
	if err != nil {
		t.Fatal(err)
	}
	if after == before {
		return before, before
	}
	if after != nil {
		after.ResourceVersion = version(len(h.log) + 1)
		if before == nil {
			after.UID = types.UID(after.ResourceVersion)
		}
	}
	h.log = append(h.log, happened{p.secret, after})
	if h.now[p.secret] = after; after == nil {
		delete(h.now, p.secret)
	}
	return before, after
}

// own simulates a write of this process.
func (h *history) own(t *rapid.T, key, value string) {
	known := h.x.get(placeOf(key).secret)
	before, after := h.write(t, key, value)
	if before == nil && after == nil && known != nil {
		// The process sent a request for the Secret, and the API server did not find it.
		h.x.onGone(known)
	}
	if after != nil {
		h.answer(t, after)
	} else if before != nil {
		h.x.onGone(before)
	}
	// The response that a Secret does not exist has no version. The watch may then still report an older Secret with
	// the same name that the process does not know about.
	h.mine[placeOf(key).secret] = before != nil || known != nil && known.UID == h.last(placeOf(key).secret)
}

// last returns the UID of the newest Secret with a name.
func (h *history) last(name string) (uid types.UID) {
	for _, e := range h.log {
		if e.name == name && e.state != nil {
			uid = e.state.UID
		}
	}
	return uid
}

// answer passes a Secret to the cache as the response to a request for that Secret.
func (h *history) answer(t *rapid.T, secret *corev1.Secret) {
	if err := h.x.onRead(secret.DeepCopy()); err != nil {
		t.Fatal(err)
	}
}

func (h *history) hear() {
	e := h.log[h.heard]
	h.heard++
	if e.state == nil {
		gone := h.at(h.heard - 1)[e.name].DeepCopy()
		gone.ResourceVersion = version(h.heard)
		_ = h.x.Delete(gone)
	} else {
		_ = h.x.Update(e.state.DeepCopy())
	}
}

// at returns the state after a number of changes.
func (h *history) at(n int) map[string]*corev1.Secret {
	all := map[string]*corev1.Secret{}
	for _, e := range h.log[:n] {
		if all[e.name] = e.state; e.state == nil {
			delete(all, e.name)
		}
	}
	return all
}

func values(all map[string]*corev1.Secret) map[string]string {
	found := map[string]string{}
	for _, secret := range all {
		for key, field := range fieldsOf(secret) {
			found[key] = string(secret.Data[field])
		}
	}
	return found
}

func (h *history) indexed() map[string]string {
	all := map[string]*corev1.Secret{}
	for _, secret := range h.x.within("") {
		all[secret.Name] = secret
	}
	return values(all)
}

// TestSecretCache checks that a process sees its own writes at once and all other writes eventually, with any order of
// own writes, other writes, late events and lost watches.
func TestSecretCache(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := &history{now: map[string]*corev1.Secret{}, mine: map[string]bool{}}
		told := map[string]bool{}
		h.x = newSecretCache(zap.NewNop(), func(keys []string) {
			for _, key := range keys {
				told[key] = true
			}
		})
		_ = h.x.Replace(nil, version(0))
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			clear(told)
			before := h.indexed()
			h.step(t)
			h.check(t, before, told)
		}
		for h.heard < len(h.log) {
			h.hear()
		}
		if diff := cmp.Diff(values(h.now), h.indexed()); diff != "" || h.x.gone.Len() > 0 {
			t.Fatalf("in the end, %d deletions are unheard of; -want +got:\n%s", h.x.gone.Len(), diff)
		}
	})
}

func (h *history) step(t *rapid.T) {
	key := rapid.SampledFrom(somewhere).Draw(t, "key")
	value := rapid.SampledFrom([]string{"", "1", "2"}).Draw(t, "value")
	switch rapid.IntRange(0, 9).Draw(t, "step") {
	case 0, 1, 2:
		h.own(t, key, value)
	case 3, 4, 5:
		h.write(t, key, value)
		delete(h.mine, placeOf(key).secret)
	case 6:
		// A request for one object may return an outdated state.
		if n := rapid.IntRange(h.heard, len(h.log)).Draw(t, "asked"); n > 0 {
			if r := h.at(n)[placeOf(key).secret]; r != nil {
				h.answer(t, r)
			}
		}
	case 7:
		// The watch is lost and starts again from a list, which may be outdated.
		h.heard = rapid.IntRange(h.heard, len(h.log)).Draw(t, "listed")
		var list []any
		for _, secret := range h.at(h.heard) {
			list = append(list, secret.DeepCopy())
		}
		_ = h.x.Replace(list, version(h.heard))
	default:
		if h.heard < len(h.log) {
			h.hear()
		}
	}
}

func (h *history) check(t *rapid.T, before map[string]string, told map[string]bool) {
	now := h.indexed()
	for _, key := range somewhere {
		if h.mine[placeOf(key).secret] {
			if want := values(h.now)[key]; now[key] != want {
				t.Fatalf("%s is %q, and this process wrote %q", key, now[key], want)
			}
		}
		if before[key] != now[key] && !told[key] {
			t.Fatalf("subscribers were not told of %s", key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(told)) {
		if before[key] == now[key] {
			t.Fatalf("there were news of %s, which is the same", key)
		}
	}
}

// TestRestoredAPIServer checks that the list after a restore from a backup replaces the cache, although its versions
// are older.
func TestRestoredAPIServer(t *testing.T) {
	told := map[string]bool{}
	c := newSecretCache(zap.NewNop(), func(keys []string) {
		for _, key := range keys {
			told[key] = true
		}
	})
	secret := func(key, value, version string) *corev1.Secret {
		s, err := placeOf(key).with(nil, []byte(value))
		if err != nil {
			t.Fatal(err)
		}
		s.ResourceVersion, s.UID = version, types.UID(key)
		return s
	}
	_ = c.Replace([]any{secret("stays", "new", "90"), secret("goes", "new", "91")}, "100")
	if err := c.onWrite(secret("written", "new", "101")); err != nil {
		t.Fatal(err)
	}
	c.onGone(secret("stays", "new", "90"))
	clear(told)
	_ = c.Replace([]any{secret("stays", "old", "40")}, "50")
	all := map[string]*corev1.Secret{}
	for _, secret := range c.within("") {
		all[secret.Name] = secret
	}
	if diff := cmp.Diff(map[string]string{"stays": "old"}, values(all)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff(map[string]bool{"stays": true, "goes": true, "written": true}, told); diff != "" {
		t.Errorf("subscribers: -want +got:\n%s", diff)
	}
}
