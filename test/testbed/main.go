// Testbed is a Kubernetes control plane for tests: etcd, API server, controllers and scheduler of one release, built
// into this binary, and a kubelet that runs pods as processes. All of it lives in namespaces that end with the program.
//
// A pod has what it would have on a node with kubelet and containerd:
//
//   - the files, command, variables, folder and user of its image, of which each run has its own view; or, for an image that a program of this
//     machine stands for, that program among this machine's files, also where a command is asked for that is not there
//   - the securityContext of pod and container: user, groups, fsGroup, runAsNonRoot, capabilities (of the process and of files),
//     allowPrivilegeEscalation, readOnlyRootFilesystem, privileged, procMount, and the sysctls of the network that are safe
//   - volumes from emptyDir, hostPath, ConfigMaps, Secrets, tokens and the downward API; probes, hooks, init containers and sidecars
//
// It does without resource requests and limits, size limits of volumes, DNS, NetworkPolicies, seccomp, AppArmor,
// SELinux, /sys, users of its own (hostUsers) and processes or IPC that the containers of a pod share. Ports below 1024
// need a capability or a sysctl, as with containerd 1; containerd 2 opens them to all.
//
// An image needs a kernel that mounts an overlay (in a user namespace, Linux 5.11); programs of this machine do not.
//
// In a user namespace, where not root runs it, containers have the one user that there is, and files have no
// capabilities.
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
  testbed up --dir DIR [--keep] [--nodes N] [--image NAME=PROGRAM|NAME=oci:LAYOUT ...]
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
