package cluster

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/model/snapshot"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

func secretRef(namespace, name string) ir.Ref {
	return ir.Ref{Kind: kinds.Secret, Namespace: namespace, Name: name}
}

func secretWith(namespace, name, value string) *corev1.Secret {
	o := object(kinds.Secret, namespace, name).(*corev1.Secret)
	o.Data = map[string][]byte{"value": []byte(value)}
	return o
}

// holds returns the value of a Secret in the store, or "" if the Secret does not exist.
func holds(c *Cluster, namespace, name string) string {
	o := c.Store().Get(object(kinds.Secret, namespace, name))
	if o == nil {
		return ""
	}
	return string(o.(*corev1.Secret).Data["value"])
}

func TestReferencedSecrets(t *testing.T) {
	s := startAPIServer(t)
	s.set(secretWith("a", "one", "1"), secretWith("a", "other", "1"), secretWith("b", "one", "2"))
	c := run(t, Options{Kubeconfig: s.kubeconfig(t), Referenced: true}, quietLog(t))
	waitSynced(t, c)
	follow := func(refs ...ir.Ref) bool { return c.Follow(slices.Values(refs)) }
	if follow(secretRef("a", "one"), secretRef("a", "missing")) {
		t.Error("Secrets count as read before they are asked for")
	}
	eventually(t, c.Store(), "both are read",
		func() bool { return follow(secretRef("a", "one"), secretRef("a", "missing")) })
	if got := holds(c, "a", "one"); got != "1" {
		t.Errorf("the Secret holds %q", got)
	}
	s.set(secretWith("a", "one", "new"), secretWith("a", "missing", "here"))
	eventually(t, c.Store(), "changes", func() bool {
		return holds(c, "a", "one") == "new" &&
			holds(c, "a", "missing") == "here"
	})
	s.remove(secretWith("a", "one", ""))
	eventually(t, c.Store(), "deleted", func() bool { return holds(c, "a", "one") == "" })
	s.set(secretWith("a", "one", "again"))
	eventually(t, c.Store(), "there again", func() bool { return holds(c, "a", "one") == "again" })

	eventually(t, c.Store(), "the other namespace", func() bool { return follow(secretRef("b", "one")) })
	if holds(c, "a", "one") != "" || holds(c, "a", "missing") != "" || holds(c, "b", "one") != "2" {
		t.Error("what nobody refers to any more is kept")
	}
	for _, r := range s.seen(func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/secrets") }) {
		if !strings.Contains(r.URL.Path, "/namespaces/") ||
			!strings.HasPrefix(r.URL.Query().Get("fieldSelector"), "metadata.name=") {
			t.Errorf("a request for more than one Secret: %s", r.URL)
		}
	}
}

func TestReferencedSecretsSurviveLostWatches(t *testing.T) {
	s := startAPIServer(t)
	s.set(secretWith("a", "one", "1"), secretWith("a", "two", "1"))
	c := run(t, Options{Kubeconfig: s.kubeconfig(t), Referenced: true}, quietLog(t))
	waitSynced(t, c)
	refs := slices.Values([]ir.Ref{secretRef("a", "one"), secretRef("a", "two")})
	eventually(t, c.Store(), "read", func() bool { return c.Follow(refs) })
	s.vanish(secretWith("a", "two", ""))
	s.set(secretWith("a", "one", "2"))
	eventually(t, c.Store(), "caught up",
		func() bool { return holds(c, "a", "one") == "2" && holds(c, "a", "two") == "" })
	if !c.Follow(refs) {
		t.Error("a lost watch makes a Secret unread")
	}
}

func TestReferencedSecretIsForbidden(t *testing.T) {
	s := startAPIServer(t)
	s.set(secretWith("a", "one", "1"))
	s.refuse("secrets", true)
	c := run(t, Options{Kubeconfig: s.kubeconfig(t), Referenced: true}, quietLog(t))
	waitSynced(t, c)
	ref := secretRef("a", "one")
	eventually(t, c.Store(), "answered", func() bool { return c.Follow(slices.Values([]ir.Ref{ref})) })
	if !c.Store().Take().Denied(ref) {
		t.Error("the snapshot does not say that the Secret may not be read")
	}
	s.refuse("secrets", false)
	eventually(t, c.Store(), "allowed", func() bool {
		return holds(c, "a", "one") == "1" &&
			!c.Store().Take().Denied(ref)
	})
}

func TestReferencedSecretsWhileTheServerIsAway(t *testing.T) {
	s := startAPIServer(t)
	s.set(secretWith("a", "one", "1"))
	c := run(t, Options{Kubeconfig: s.kubeconfig(t), Referenced: true}, quietLog(t))
	waitSynced(t, c)
	release := s.hold("secrets")
	defer release()
	refs := slices.Values([]ir.Ref{secretRef("a", "one")})
	c.Follow(refs)
	fixture.Holds(t, "the Secret is asked for", func() bool {
		return len(s.seen(func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/secrets") })) > 0
	})
	s.http.CloseClientConnections()
	if c.Follow(refs) {
		t.Error("a Secret counts as read although nobody has answered")
	}
	release()
	eventually(t, c.Store(), "read", func() bool { return c.Follow(refs) && holds(c, "a", "one") == "1" })
}

// TestNewReferenceWhileTheOldOneEnds checks that a Secret stays in the store if the reference to it is removed and
// immediately added again.
func TestNewReferenceWhileTheOldOneEnds(t *testing.T) {
	s := startAPIServer(t)
	s.set(secretWith("a", "one", "1"))
	c := run(t, Options{Kubeconfig: s.kubeconfig(t), Referenced: true}, quietLog(t))
	waitSynced(t, c)
	refs := slices.Values([]ir.Ref{secretRef("a", "one")})
	for range 50 {
		c.Follow(refs)
		c.Follow(slices.Values([]ir.Ref(nil)))
	}
	eventually(t, c.Store(), "read", func() bool { return c.Follow(refs) && holds(c, "a", "one") == "1" })
}

// TestTenant19Secrets checks the limit for a namespace whose objects refer to too many Secrets. Secrets over the limit
// are not watched, and are marked as denied until other references are removed. Other namespaces are not affected.
func TestTenant19Secrets(t *testing.T) {
	s := startAPIServer(t)
	c := run(t, Options{Kubeconfig: s.kubeconfig(t), Referenced: true}, quietLog(t))
	waitSynced(t, c)
	const extra = 3
	var hostile []ir.Ref
	for i := range snapshot.MaxByName + extra {
		hostile = append(hostile, secretRef("b", fmt.Sprintf("s%05d", i)))
	}
	all := append(slices.Clone(hostile), secretRef("a", "one"))
	c.Follow(slices.Values(all))
	denied := func() (n int) {
		now := c.Store().Take()
		for _, ref := range all {
			if now.Denied(ref) {
				n++
			}
		}
		return n
	}
	if n, followed := denied(), c.secrets.followed.Len(); n != extra || followed != snapshot.MaxByName+1 {
		t.Errorf("%d are followed, and %d count as unreadable", followed, n)
	}
	c.Follow(slices.Values(all[extra:]))
	if n, followed := denied(), c.secrets.followed.Len(); n != 0 || followed != snapshot.MaxByName+1 {
		t.Errorf("with room, %d are followed, and %d count as unreadable", followed, n)
	}
	c.Follow(slices.Values(all[len(all)-1:]))
}
