package featuretests

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestTenant21Expressions checks that one namespace's host names with regular expressions neither use up the time
// limit of other namespaces, nor take a name that an older expression of another namespace matches.
func TestTenant21Expressions(t *testing.T) {
	in := start(t, rivals(t)+tenant("a", 10,
		annotate(rule("main", "a.example", "Prefix", "/", "one"), "server-alias", `~^shop-[0-9]+\.example$`)))
	var slow []string
	for i := range 32 {
		slow = append(slow, fmt.Sprintf(`~(.*.*.*.*.*.*.*.*.*.*.*.*.*.*.*.*.*.*.*.*)*!%d`, i))
	}
	costly := annotate(rule("costly", "costly.example", "Prefix", "/", "one"), "server-alias", strings.Join(slow, ","))
	honest := annotate(rule("honest", "b.example", "Prefix", "/", "one"), "server-alias", `~^b-[0-9]+\.example$`)
	long := "shop-" + strings.Repeat("1", 50) + "." + strings.Repeat("2", 60) + "." + strings.Repeat("3",
		60) + ".example"
	for _, age := range []int{5, 20} {
		in.attacks(age, costly)
		in.awaitVerdict("Ingress/b/costly", "QuotaExceeded", "server-alias")
		in.expect("shop-12.example", "/", http.StatusOK, "A /")
		in.expect(long, "/", http.StatusNotFound, "")
		in.attacks(age, honest)
		in.expect("b-12.example", "/", http.StatusOK, "B /")
	}
	in.attacks(20, annotate(rule("grab", "grab.example", "Prefix", "/", "one"), "server-alias",
		`~(shop|free)-[0-9]+\.example$`))
	in.expect("shop-12.example", "/", http.StatusOK, "A /")
	in.expect("free-12.example", "/", http.StatusOK, "B /")
}

// TestTenant24BelowAWildcard checks that, if hosts are shared, a younger namespace may own a name below another
// namespace's wildcard, and that both get a warning.
func TestTenant24BelowAWildcard(t *testing.T) {
	in := start(t, rivals(t)+tenant("a", 10, rule("wild", "*.wild.example", "Prefix", "/", "one")))
	in.expect("x.wild.example", "/", http.StatusOK, "A /")
	in.attacks(20, rule("below", "x.wild.example", "Prefix", "/app", "one"))
	in.expect("x.wild.example", "/app", http.StatusOK, "B /app")
	in.awaitVerdict("Ingress/b/below", "HostConflict", "the namespace a owns the hosts *.wild.example")
	in.awaitVerdict("Ingress/a/wild", "HostConflict",
		"other namespaces own hosts below *.wild.example, and get the requests for these hosts: b.")
	in.attacks(20)
	in.eventually("the wildcard is whole again", func() error {
		if all := in.messages("Ingress/a/wild", "HostConflict"); len(all) > 0 {
			return fmt.Errorf("it is told %q", all)
		}
		return nil
	})
	in.expect("x.wild.example", "/app", http.StatusOK, "A /app")
}
