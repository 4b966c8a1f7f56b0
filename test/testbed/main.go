// Testbed is a Kubernetes control plane for tests: etcd, API server, controllers and scheduler of one release, built
// into this binary, and a kubelet that runs pods as processes. Everything runs in namespaces that end with the program.
//
// A pod gets what it would get on a node with kubelet and containerd:
//
//   - the files, command, variables, working directory and user of its image. Each run has its own view of the files.
//     If a program of this machine replaces an image, the pod runs that program with the files of this machine, also
//     if the command in its manifest does not exist here
//   - the securityContext of pod and container: user, groups, fsGroup, runAsNonRoot, capabilities (of the process and
//     of files), allowPrivilegeEscalation, readOnlyRootFilesystem, privileged, procMount, and safe network sysctls
//   - volumes from emptyDir, hostPath, ConfigMaps, Secrets, tokens and the downward API; probes, hooks, init containers
//     and sidecars
//
// It does not support resource requests and limits, size limits of volumes, DNS, NetworkPolicies, seccomp, AppArmor,
// SELinux, /sys, user namespaces of pods (hostUsers), and processes or IPC that the containers of a pod share. Ports
// below 1024 need a capability or a sysctl, as with containerd 1; containerd 2 allows them for every container.
//
// Images need a kernel that supports overlay mounts (in a user namespace, Linux 5.11). Programs of this machine do not.
//
// If it does not run as root, it runs in a user namespace. Containers then have only one user, and files have no
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

// commands returns the subcommands besides those of Kubernetes. The last three are run by "up", not by users.
func commands() map[string]func(context.Context, []string) error {
	return map[string]func(context.Context, []string) error{
		"up":                up,
		"exec":              execInside,
		insideCommand:       upInside,
		"etcd":              runEtcd,
		kubelet.InitCommand: func(context.Context, []string) error { return kubelet.SandboxMain() },
	}
}
