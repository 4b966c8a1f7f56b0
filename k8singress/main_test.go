package k8singress_test

import (
	"os"
	"testing"

	"github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/k8singress/k8singress"
)

// asCaddy is the environment variable that makes the test binary run as the caddy command.
const asCaddy = "K8SINGRESS_TEST_AS_CADDY"

// filesOfCaddy is the environment variable with the limit on open files of the caddy command. If it is empty, the limit
// does not change.
const filesOfCaddy = "K8SINGRESS_TEST_FILES"

// nothingListens is the default address of the admin API in these tests. It keeps them away from a Caddy that already
// runs on the machine.
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
