// Testbed is a Kubernetes control plane for tests: etcd, API server, controllers and scheduler of one release, built into
// this binary, and a kubelet that runs pods as processes. All of it lives in namespaces that end with the program.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/k8singress/k8singress/test/testbed/kubelet"
)

const usage = `usage:
  testbed up --dir DIR [--keep] [--nodes N] [--image NAME=PROGRAM ...]
      Runs a cluster until SIGTERM or Ctrl-C. Writes DIR/kubeconfig, then prints "ready".
  testbed exec --dir DIR -- COMMAND [ARGUMENT ...]
      Runs a command in the cluster's network, with KUBECONFIG set.
`

func main() {
	arguments := os.Args[1:]
	if len(arguments) == 0 {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	name := arguments[0]
	if _, ok := upstream[name]; ok {
		os.Exit(runUpstream(name))
	}
	command, ok := commands()[name]
	if !ok {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := command(ctx, arguments[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "testbed %s: %v\n", name, err)
		os.Exit(1)
	}
}

// commands are the subcommands besides those of Kubernetes. The last three are what "up" runs; nobody types them.
func commands() map[string]func(context.Context, []string) error {
	return map[string]func(context.Context, []string) error{
		"up":                up,
		"exec":              execInside,
		insideCommand:       upInside,
		"etcd":              runEtcd,
		kubelet.InitCommand: func(context.Context, []string) error { return kubelet.SandboxMain() },
	}
}
