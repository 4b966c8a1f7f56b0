package featuretests

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// database is one of PostgreSQL, with a certificate.
type database struct {
	address, psql, password string
	// authority is a file with who signed the certificate.
	authority string
}

func startPostgreSQL(t *testing.T) *database {
	t.Helper()
	const folders = "/usr/lib/postgresql/*/bin"
	initdb := programOf(t, "initdb", "postgresql", folders)
	server := programOf(t, "postgres", "postgresql", folders)
	db := &database{address: free(t), psql: programOf(t, "psql", "postgresql", folders), password: "correct horse"}
	d := newDaemon(t)
	data := filepath.Join(d.folder, "data")
	create := d.command(initdb, "--pgdata", data, "--username", "postgres", "--auth", "scram-sha-256",
		"--pwfile", d.write("password", db.password+"\n"), "--encoding", "UTF8", "--locale", "C", "--no-sync")
	if output, err := create.CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, output)
	}
	certificate, key := pairOfTests(t)
	db.authority = filepath.Join(d.folder, "certificate.pem")
	_, port, _ := net.SplitHostPort(db.address)
	// With SIGQUIT it ends at once, and so do its children.
	d.start(syscall.SIGQUIT, server, "-D", data, "-h", "127.0.0.1", "-p", port, "-k", "", "-F",
		"-c", "ssl=on", "-c", "ssl_cert_file="+d.write("certificate.pem", certificate), "-c", "ssl_key_file="+d.write("key.pem", key))
	awaitServer(t, func() error {
		_, err := tryClient(t.Context(), "", db.environment(db.address, "disable"), db.psql, "-Atc", "select 1")
		return err
	})
	return db
}

// pairOfTests is the certificate that the testing packages bring along, and its key.
func pairOfTests(t *testing.T) (certificate, key string) {
	t.Helper()
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	private, err := x509.MarshalPKCS8PrivateKey(server.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	block := func(kind string, der []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	return block("CERTIFICATE", server.Certificate().Raw), block("PRIVATE KEY", private)
}

// environment tells psql where the database is, and what it wants of TLS.
func (db *database) environment(address, mode string) []string {
	host, port, _ := net.SplitHostPort(address)
	return []string{
		"PGHOST=" + host, "PGPORT=" + port, "PGUSER=postgres", "PGPASSWORD=" + db.password, "PGDATABASE=postgres",
		"PGSSLMODE=" + mode, "PGSSLROOTCERT=" + db.authority, "PGCONNECT_TIMEOUT=10",
	}
}

// TestPostgreSQL has rows go both ways, more than fits into any buffer, with TLS from end to end and without.
func TestPostgreSQL(t *testing.T) {
	db := startPostgreSQL(t)
	const rows = 50_000
	var input strings.Builder
	input.WriteString("create temporary table t (n int, text text);\ncopy t from stdin;\n")
	for n := range rows {
		fmt.Fprintf(&input, "%d\t%040d\n", n, n)
	}
	input.WriteString("\\.\nselect count(*), sum(n) from t;\nselect string_agg(text, '' order by n) from t;\n" +
		"select ssl from pg_stat_ssl where pid = pg_backend_pid();\n")
	throughTCPPorts(t, db.address, func(t *testing.T, address string) {
		for mode, secure := range map[string]string{"disable": "f", "verify-ca": "t"} {
			lines := strings.Split(client(t, input.String(), db.environment(address, mode), db.psql, "-X", "-q", "-At", "-v", "ON_ERROR_STOP=1"), "\n")
			want := fmt.Sprintf("%d|%d", rows, rows*(rows-1)/2)
			if len(lines) != 3 || lines[0] != want || len(lines[1]) != 40*rows || lines[2] != secure {
				t.Errorf("%s: %d lines, and %s, want %s", mode, len(lines), lines[0], want)
			}
		}
	})
}

// startRedis returns the address of a server, and the path of its client.
func startRedis(t *testing.T) (address, cli string) {
	t.Helper()
	server := programOf(t, "redis-server", "redis-server")
	cli = programOf(t, "redis-cli", "redis-tools")
	address = free(t)
	d := newDaemon(t)
	_, port, _ := net.SplitHostPort(address)
	d.start(syscall.SIGTERM, server, "--bind", "127.0.0.1", "--port", port, "--dir", d.folder, "--save", "", "--appendonly", "no")
	awaitServer(t, func() error {
		_, err := tryClient(t.Context(), "", nil, cli, "-h", "127.0.0.1", "-p", port, "-e", "ping")
		return err
	})
	return address, cli
}

// TestRedis has a value of a megabyte, and ten thousand commands that wait for no answer.
func TestRedis(t *testing.T) {
	address, cli := startRedis(t)
	large := strings.Repeat("0123456789abcdef", 64<<10)
	throughTCPPorts(t, address, func(t *testing.T, address string) {
		host, port, _ := net.SplitHostPort(address)
		ask := func(input string, arguments ...string) string {
			return client(t, input, nil, cli, append([]string{"-h", host, "-p", port, "-e"}, arguments...)...)
		}
		if got := ask("", "ping"); got != "PONG" {
			t.Errorf("ping is answered %q", got)
		}
		if got := ask(large, "-x", "set", "large"); got != "OK" {
			t.Errorf("set is answered %q", got)
		}
		if got := ask("", "get", "large"); got != large {
			t.Errorf("of %d bytes %d come back", len(large), len(got))
		}
		if got := ask(strings.Repeat("incr counter\r\n", 10_000), "--pipe"); !strings.Contains(got, "errors: 0, replies: 10000") {
			t.Errorf("ten thousand commands: %q", got)
		}
		if got := ask("", "getdel", "counter"); got != "10000" {
			t.Errorf("the counter is %s", got)
		}
	})
}
