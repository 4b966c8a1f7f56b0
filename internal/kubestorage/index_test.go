package kubestorage

import (
	"maps"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

// history is an API server whose news arrive late.
type history struct {
	x *index
	// now is what there is, and log what happened: nil is a deletion.
	now map[string]*record
	log []happened
	// heard is how much of it was told.
	heard int
	// mine is what the process itself did last, if nobody else did anything since.
	mine map[string]bool
}

type happened struct {
	name  string
	state *record
}

// version is that of the API server after some changes. It is never 0.
func version(changes int) string { return strconv.Itoa(changes + 1) }

var somewhere = []string{"a", "b", "certificates/i/d/d.crt", "certificates/i/d/d.key"}

// write changes a key at the API server, and returns the state before and after.
func (h *history) write(t *rapid.T, key, value string) (before, after *record) {
	p := placeOf(key)
	before = h.now[p.secret]
	var current, next *corev1.Secret
	if before != nil {
		current = before.secret
	}
	next, err := p.with(current, []byte(value))
	if value == "" {
		next, err = without(current, []string{p.field}), nil
	}
	if err != nil {
		t.Fatal(err)
	}
	if current == nil && next == nil {
		return nil, nil
	}
	if next != nil {
		next.ResourceVersion = version(len(h.log) + 1)
		if current == nil {
			next.UID = types.UID(next.ResourceVersion)
		}
		if after, err = readRecord(next); err != nil {
			t.Fatal(err)
		}
	}
	h.log = append(h.log, happened{p.secret, after})
	if h.now[p.secret] = after; after == nil {
		delete(h.now, p.secret)
	}
	return before, after
}

// own is a write of this process.
func (h *history) own(t *rapid.T, key, value string) {
	known := h.x.record(placeOf(key).secret)
	before, after := h.write(t, key, value)
	if before == nil && after == nil && known != nil {
		// The API server has been asked, and did not find it.
		h.x.forget(known)
	}
	if after != nil {
		h.x.learn(after)
	} else if before != nil {
		h.x.forget(before)
	}
	// That there is nothing of which it knows nothing tells a process no version: it may be told of a past when it was there.
	h.mine[placeOf(key).secret] = before != nil || known != nil
}

func (h *history) hear() {
	e := h.log[h.heard]
	h.heard++
	if e.state == nil {
		h.x.miss(e.name, version(h.heard))
	} else {
		h.x.see(e.state)
	}
}

// at is what there was after a number of changes.
func (h *history) at(n int) map[string]*record {
	all := map[string]*record{}
	for _, e := range h.log[:n] {
		if all[e.name] = e.state; e.state == nil {
			delete(all, e.name)
		}
	}
	return all
}

func values(all map[string]*record) map[string]string {
	found := map[string]string{}
	for _, r := range all {
		for key, i := range r.items {
			found[key] = string(i.value)
		}
	}
	return found
}

func (h *history) indexed() map[string]string {
	found := map[string]string{}
	h.x.below("", func(key string) string {
		i, _ := h.x.items.Get(key)
		found[key] = string(i.value)
		return ""
	})
	return found
}

// TestIndex: whatever the order of writes here, writes elsewhere and late news is, and however often the watch is lost, a
// process sees its own writes at once, and all others in the end.
func TestIndex(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := &history{now: map[string]*record{}, mine: map[string]bool{}}
		told := map[string]bool{}
		h.x = newIndex(func(keys []string) {
			for _, key := range keys {
				told[key] = true
			}
		})
		h.x.replace(map[string]*record{}, version(0))
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			clear(told)
			before := h.indexed()
			h.step(t)
			h.check(t, before, told)
		}
		for h.heard < len(h.log) {
			h.hear()
		}
		if diff := cmp.Diff(values(h.now), h.indexed()); diff != "" || len(h.x.ahead) > 0 {
			t.Fatalf("in the end, %d are ahead; -want +got:\n%s", len(h.x.ahead), diff)
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
		// A question about one object, with an answer that may be late: then it is of a state that is gone.
		if n := rapid.IntRange(h.heard, len(h.log)).Draw(t, "asked"); n > 0 {
			if r := h.at(n)[placeOf(key).secret]; r != nil {
				h.x.learn(r)
			}
		}
	case 7:
		// The watch is lost, and begins again from a list of then or of now.
		h.heard = rapid.IntRange(h.heard, len(h.log)).Draw(t, "listed")
		h.x.replace(h.at(h.heard), version(h.heard))
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
			t.Fatalf("nobody was told of %s", key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(told)) {
		if before[key] == now[key] {
			t.Fatalf("there were news of %s, which is the same", key)
		}
	}
}
