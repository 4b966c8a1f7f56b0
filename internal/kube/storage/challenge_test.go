package storage

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

func tokenKey(host string) string { return "acme/" + issuer + "/challenge_tokens/" + host + ".json" }

// TestUnknownChallengesCostNothing checks that requests with invented challenges cause no request to the API server.
func TestUnknownChallengesCostNothing(t *testing.T) {
	p := newSimulated(t).start(t)
	p.SetWanted(func(host string) bool { return host == "wanted.example" })
	if p.Exists(t.Context(), "a") {
		t.Fatal("it is there")
	}
	p.link.count("")
	for i := range 1000 {
		if got := has(t, p, tokenKey(fmt.Sprintf("host-%d.example", i))); got != "" {
			t.Fatalf("it is %q", got)
		}
	}
	for _, key := range []string{"acme/x/challenge_tokens/wanted.example", "acme/x/users/wanted.example.json", crt} {
		if got := has(t, p, key); got != "" {
			t.Fatalf("%s is %q", key, got)
		}
	}
	if n := p.link.count(""); n > 0 {
		t.Errorf("%d requests to the API server", n)
	}
}

// TestTokensOfOthers checks that a process finds a challenge token that another process has stored, even if the watch
// event has not arrived yet.
func TestTokensOfOthers(t *testing.T) {
	for name, expect := range map[string]func(writer, reader *process) error{
		"by a lock": func(writer, _ *process) error { return writer.Lock(t.Context(), "issue_cert_*.A.example") },
		"by the hook": func(_, reader *process) error {
			reader.SetWanted(func(host string) bool { return host == "wildcard_.a.example" })
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newSimulated(t)
			writer, reader := w.start(t), w.start(t)
			fixture.Receive(t, "all Secrets", reader.secrets.synced)
			if err := expect(writer, reader); err != nil {
				t.Fatal(err)
			}
			key := tokenKey("wildcard_.a.example")
			fixture.Holds(t, "the news of the lock", func() bool { return reader.wants("wildcard_.a.example") })
			defer w.api.hold()()
			store(t, writer, key, "token")
			reader.link.count("")
			var group sync.WaitGroup
			for range 50 {
				group.Go(func() {
					if got := has(t, reader, key); got != "token" {
						t.Errorf("the token is %q", got)
					}
				})
			}
			group.Wait()
			if n := reader.link.count("GET"); n != 1 {
				t.Errorf("%d requests to the API server", n)
			}
			if writer.locks.find("issue_cert_*.A.example") != nil {
				if err := writer.Unlock(t.Context(), "issue_cert_*.A.example"); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestLookUpsEndWithTheLock checks that a process stops looking up the tokens of a host when the lock of the host is
// released.
func TestLookUpsEndWithTheLock(t *testing.T) {
	w := newWorld(t)
	writer, reader := w.start(t), w.start(t)
	if err := writer.Lock(t.Context(), "issue_cert_a.example"); err != nil {
		t.Fatal(err)
	}
	fixture.Holds(t, "the lock", func() bool { return reader.wants("a.example") })
	if err := writer.Unlock(t.Context(), "issue_cert_a.example"); err != nil {
		t.Fatal(err)
	}
	fixture.Holds(t, "the end of the lock", func() bool { return !reader.wants("a.example") })
}

// TestFloodOfExpectedChallenges checks that many challenge requests for a host that is getting a certificate cause only
// a few requests per second.
func TestFloodOfExpectedChallenges(t *testing.T) {
	p := newSimulated(t).start(t)
	var asked atomic.Int32
	p.SetWanted(func(string) bool { asked.Add(1); return true })
	if p.Exists(t.Context(), "a") {
		t.Fatal("it is there")
	}
	p.link.count("")
	for range 1000 {
		has(t, p, tokenKey("a.example"))
	}
	one := p.link.count("")
	for i := range 1000 {
		has(t, p, tokenKey(fmt.Sprintf("host-%d.example", i)))
	}
	if all := p.link.count(""); one > 5 || all > 2*lookupBurst || asked.Load() != 2000 {
		t.Errorf("one host cost %d requests, and all together %d", one, all)
	}
}
