package daemons

import (
	"crypto/x509"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/k8singress/k8singress/internal/fixture"
)

// PostgreSQL is a server with a certificate and an empty database, and its client.
type PostgreSQL struct {
	// Address is where it listens.
	Address string

	psql string
	// authority is a file with who signed the certificate.
	authority string
}

// Modes of TLS that psql knows: none, or with a certificate that the right authority has signed.
const (
	WithoutTLS = "disable"
	WithTLS    = "verify-ca"
)

const (
	debianFolders = "/usr/lib/postgresql/*/bin"
	postgresql    = "postgresql"
	// password is asked for on every connection.
	password = "correct horse"
)

// StartPostgreSQL runs a server. The test is left out where Debian's package postgresql is not installed.
func StartPostgreSQL(t testing.TB) *PostgreSQL {
	t.Helper()
	initdb, server := Program(t, "initdb", postgresql, debianFolders), Program(t, "postgres", postgresql, debianFolders)
	db := &PostgreSQL{Address: fixture.Address(t), psql: Program(t, "psql", postgresql, debianFolders)}
	d := newDaemon(t)
	data := filepath.Join(d.folder, "data")
	create := d.command(initdb, "--pgdata", data, "--username", "postgres", "--auth", "scram-sha-256",
		"--pwfile", d.write("password", password+"\n"), "--encoding", "UTF8", "--locale", "C", "--no-sync")
	if output, err := create.CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, output)
	}
	identity := fixture.Identify(t, nil, &x509.Certificate{})
	db.authority = d.write("certificate.pem", string(identity.PEM()))
	_, port := split(t, db.Address)
	// With SIGQUIT it ends at once, and so do its children.
	d.start(syscall.SIGQUIT, server, "-D", data, "-h", "127.0.0.1", "-p", port, "-k", "", "-F",
		"-c", "ssl=on", "-c", "ssl_cert_file="+db.authority, "-c", "ssl_key_file="+d.write("key.pem", string(identity.KeyPEM())))
	fixture.Eventually(t, "PostgreSQL", func() error {
		_, err := db.try(t, db.Address, WithoutTLS, "select 1")
		return err
	})
	return db
}

// Run hands a script to psql, which reaches the server at an address, and returns the rows, without a heading. The mode is
// WithTLS or WithoutTLS.
func (db *PostgreSQL) Run(t testing.TB, address, mode, script string) string {
	t.Helper()
	output, err := db.try(t, address, mode, script)
	if err != nil {
		t.Fatalf("psql: %v", err)
	}
	return output
}

func (db *PostgreSQL) try(t testing.TB, address, mode, script string) (string, error) {
	t.Helper()
	host, port := split(t, address)
	return run(t.Context(), script, []string{
		"PGHOST=" + host, "PGPORT=" + port, "PGUSER=postgres", "PGPASSWORD=" + password, "PGDATABASE=postgres",
		"PGSSLMODE=" + mode, "PGSSLROOTCERT=" + db.authority, "PGCONNECT_TIMEOUT=10",
	}, db.psql, "-X", "-q", "-At", "-v", "ON_ERROR_STOP=1")
}
