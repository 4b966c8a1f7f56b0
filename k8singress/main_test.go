package k8singress_test

import (
	"os"
	"testing"

	"github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/k8singress/k8singress"
)

// asCaddy is the environment variable that makes the test program the caddy command.
const asCaddy = "K8SINGRESS_TEST_AS_CADDY"

// filesOfCaddy is the one with the number of file descriptors that the command may have, if it has a limit of its own.
const filesOfCaddy = "K8SINGRESS_TEST_FILES"

// nothingListens is the default address of the admin API in these tests: a Caddy that already runs on the machine is not theirs.
const nothingListens = "unix//nothing/admin.sock"

func TestMain(m *testing.M) {
	if os.Getenv(asCaddy) != "" {
		limitFiles(os.Getenv(filesOfCaddy))
		caddycmd.Main()
		return
	}
	caddy.DefaultAdminListen = nothingListens
	os.Exit(m.Run())
}
