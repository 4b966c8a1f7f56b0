package daemons

import (
	"crypto/x509"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// PostgreSQL is a running server with a certificate and an empty database, together with its client.
type PostgreSQL struct {
	// Address is the address on which the server listens.
	Address string

	psql string
	// authority is the path of the file with the certificate of the certificate authority.
	authority string
}

// The TLS modes of psql. With WithTLS, psql connects only if the server's certificate was signed by the certificate
// authority of the test.
const (
	WithoutTLS = "disable"
	WithTLS    = "verify-ca"
)

const (
	debianFolders = "/usr/lib/postgresql/*/bin"
	postgresql    = "postgresql"
	// password is required on every connection.
	password = "correct horse"
)

// StartPostgreSQL runs a PostgreSQL server. The test is skipped if Debian's package postgresql is not installed.
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
	// SIGQUIT stops the server and its child processes immediately.
	d.start(syscall.SIGQUIT, server, "-D", data, "-h", "127.0.0.1", "-p", port, "-k", "", "-F",
		"-c", "ssl=on", "-c", "ssl_cert_file="+db.authority, "-c",
		"ssl_key_file="+d.write("key.pem", string(identity.KeyPEM())))
	fixture.Eventually(t, "PostgreSQL", func() error {
		_, err := db.try(t, db.Address, WithoutTLS, "select 1")
		return err
	})
	return db
}

// Run runs an SQL script with psql, which connects to the given address, and returns the resulting rows without column
// names. mode is WithTLS or WithoutTLS.
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
