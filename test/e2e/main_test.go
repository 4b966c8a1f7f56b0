// Package e2e tests the controller as a user sees it, with a real API server, real controllers, pods and a Caddy
// process. The tests run in the network of a cluster that lives as long as the test binary.
package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"

	"github.com/k8singress/k8singress/test/harness"
)

func TestMain(m *testing.M) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if cluster, inside := harness.Inside(); inside {
		if err := cluster.MakeAccount(ctx); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(m.Run())
	}
	if os.Geteuid() != 0 {
		fmt.Fprintln(os.Stderr,
			"not root: the cluster runs in a user namespace, where containers have no other users and files no "+
				"capabilities")
	}
	if err := fetchDefinitions(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	err := harness.Run(ctx, harness.Needs{Image: true}, os.Stdout, os.Stderr)
	if failed := new(exec.ExitError); errors.As(err, &failed) {
		os.Exit(max(failed.ExitCode(), 1))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
