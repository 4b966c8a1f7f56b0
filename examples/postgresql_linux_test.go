package examples_test

import (
	"net"
	"testing"

	"github.com/k8singress/k8singress/internal/tests/daemons"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// TestPostgreSQL runs a database at the address that the example uses.
func TestPostgreSQL(t *testing.T) {
	db := daemons.StartPostgreSQL(t)
	_, own, err := net.SplitHostPort(db.Address)
	if err != nil {
		t.Fatal(err)
	}
	ports := copyWithFreePorts(t, "postgresql")
	replaceInFile(t, "examples/postgresql/manifests/local.yaml", "port: "+ports["5433"], "port: "+own)
	start(t, "postgresql")
	address := "127.0.0.1:" + ports["5432"]
	fixture.Eventually(t, "the port", func() error {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			err = conn.Close()
		}
		return err
	})
	if got := db.Run(t, address, daemons.WithTLS, "select 6 * 7"); got != "42" {
		t.Errorf("the answer is %q", got)
	}
}
