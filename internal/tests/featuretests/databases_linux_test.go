package featuretests

import (
	"fmt"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/tests/daemons"
)

// TestPostgreSQL checks that rows are sent in both directions, larger than any buffer, with end-to-end TLS and
// without.
func TestPostgreSQL(t *testing.T) {
	db := daemons.StartPostgreSQL(t)
	const rows = 50_000
	var script strings.Builder
	script.WriteString("create temporary table t (n int, text text);\ncopy t from stdin;\n")
	for n := range rows {
		fmt.Fprintf(&script, "%d\t%040d\n", n, n)
	}
	script.WriteString("\\.\nselect count(*), sum(n) from t;\nselect string_agg(text, '' order by n) from t;\n" +
		"select ssl from pg_stat_ssl where pid = pg_backend_pid();\n")
	throughTCPPorts(t, db.Address, func(t *testing.T, address string) {
		for mode, secure := range map[string]string{daemons.WithoutTLS: "f", daemons.WithTLS: "t"} {
			lines := strings.Split(db.Run(t, address, mode, script.String()), "\n")
			want := fmt.Sprintf("%d|%d", rows, rows*(rows-1)/2)
			if len(lines) != 3 || lines[0] != want || len(lines[1]) != 40*rows || lines[2] != secure {
				t.Errorf("%s: %d lines, and %s, want %s", mode, len(lines), lines[0], want)
			}
		}
	})
}

// TestRedis checks a value of a megabyte, and ten thousand pipelined commands.
func TestRedis(t *testing.T) {
	server := daemons.StartRedis(t)
	large := strings.Repeat("0123456789abcdef", 64<<10)
	throughTCPPorts(t, server.Address, func(t *testing.T, address string) {
		ask := func(input string, arguments ...string) string { return server.Run(t, address, input, arguments...) }
		if got := ask("", "ping"); got != "PONG" {
			t.Errorf("ping is answered %q", got)
		}
		if got := ask(large, "-x", "set", "large"); got != "OK" {
			t.Errorf("set is answered %q", got)
		}
		if got := ask("", "get", "large"); got != large {
			t.Errorf("of %d bytes %d come back", len(large), len(got))
		}
		if got := ask(strings.Repeat("incr counter\r\n", 10_000), "--pipe"); !strings.Contains(got,
			"errors: 0, replies: 10000") {
			t.Errorf("ten thousand commands: %q", got)
		}
		if got := ask("", "getdel", "counter"); got != "10000" {
			t.Errorf("the counter is %s", got)
		}
	})
}
