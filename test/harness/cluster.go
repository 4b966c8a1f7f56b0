package harness

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// folderVariable is the environment variable with the folder of the cluster that a process runs in.
const folderVariable = "K8SINGRESS_CLUSTER"

// endTimeout is the time limit for the end of a cluster, which usually takes a second.
const endTimeout = 30 * time.Second

// Cluster is a running cluster, seen from inside its network.
type Cluster struct {
	// Folder is the folder of the testbed. It contains the kubeconfig.
	Folder   string
	Programs Programs
}

// Inside returns the cluster in whose network this process runs. It returns false outside of a cluster.
func Inside() (*Cluster, bool) {
	folder := os.Getenv(folderVariable)
	if folder == "" {
		return nil, false
	}
	return &Cluster{Folder: folder, Programs: Programs{
		Testbed: os.Getenv(testbedVariable), Echo: os.Getenv(echoVariable), Caddy: os.Getenv(caddyVariable),
		Bench: os.Getenv(benchVariable), Pebble: os.Getenv(pebbleVariable), Helm: os.Getenv(helmVariable),
		Kubectl: os.Getenv(kubectlVariable), Image: os.Getenv(imageVariable),
	}}, true
}

// Run starts a cluster with two nodes, runs this program with the same arguments inside its network, and ends the
// cluster. If the program inside fails, the error is an *exec.ExitError.
func Run(ctx context.Context, needs Needs, stdout, stderr *os.File) error {
	programs, err := Build(ctx, needs, stderr)
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "k8singress")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	begin := time.Now()
	cluster, err := up(ctx, programs, folder, stderr)
	if err != nil {
		return err
	}
	fmt.Fprintf(stderr, "cluster ready after %v\n", time.Since(begin).Round(time.Millisecond))
	return errors.Join(again(ctx, programs, folder, stdout, stderr), down(cluster))
}

// up starts the testbed, and returns when the cluster is ready.
func up(ctx context.Context, p Programs, folder string, stderr io.Writer) (*exec.Cmd, error) {
	// Tutorials set up nodes with init containers that run busybox. Here, they run true.
	nothing, err := exec.LookPath("true")
	if err != nil {
		return nil, err
	}
	controller := p.Caddy
	if p.Image != "" {
		controller = "oci:" + p.Image
	}
	cluster := exec.CommandContext(ctx, p.Testbed, "up", "--dir", folder, "--nodes", "2",
		"--image", "echo="+p.Echo, "--image", "k8singress="+controller, "--image", "busybox="+nothing)
	cluster.Stderr = stderr
	cluster.Cancel = func() error { return cluster.Process.Signal(syscall.SIGTERM) }
	cluster.WaitDelay = endTimeout
	cluster.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	lines, err := cluster.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cluster.Start(); err != nil {
		return nil, fmt.Errorf("starting the cluster: %w", err)
	}
	if awaitLine(lines, "ready") {
		return cluster, nil
	}
	return nil, fmt.Errorf("the cluster did not start (it needs root or user namespaces): %w", cluster.Wait())
}

// awaitLine waits for a line. It then reads the rest in the background, so that the writer does not block.
func awaitLine(from io.Reader, line string) bool {
	lines := bufio.NewScanner(from)
	for lines.Scan() {
		if lines.Text() == line {
			go func() { _, _ = io.Copy(io.Discard, from) }()
			return true
		}
	}
	return false
}

// again runs this program inside the network of the cluster.
func again(ctx context.Context, p Programs, folder string, stdout, stderr *os.File) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	arguments := append([]string{"exec", "--dir", folder, "--", self}, os.Args[1:]...)
	inside := exec.CommandContext(ctx, p.Testbed, arguments...)
	inside.Env = append(append(os.Environ(), folderVariable+"="+folder), p.environment()...)
	inside.Stdout, inside.Stderr = stdout, stderr
	inside.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	return inside.Run()
}

func down(cluster *exec.Cmd) error {
	_ = cluster.Process.Signal(syscall.SIGTERM)
	if err := cluster.Wait(); err != nil {
		return fmt.Errorf("ending the cluster: %w", err)
	}
	return nil
}

// Kubeconfig returns the path of the administrator's kubeconfig.
func (c *Cluster) Kubeconfig() string { return filepath.Join(c.Folder, "kubeconfig") }

// Client returns an administrator's client without a rate limit.
func (c *Cluster) Client() (kubernetes.Interface, error) {
	config, err := c.Config()
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(config)
}

// Config returns the configuration of this client.
func (c *Cluster) Config() (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig())
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	config.WarningHandler = rest.NoWarnings{}
	return config, nil
}

// Signal sends a signal to a component of the control plane, such as "kube-apiserver". The testbed restarts a component
// that ends after a second.
func (c *Cluster) Signal(component string, s syscall.Signal) error {
	pids, err := processes(component, c.Folder)
	if err != nil {
		return err
	}
	if len(pids) != 1 {
		return fmt.Errorf("%d processes are a %s of %s", len(pids), component, c.Folder)
	}
	return syscall.Kill(pids[0], s)
}

// KillPod kills the only process of a pod, like the kernel when it runs out of memory. It finds the process by the
// variable POD_NAME.
func (c *Cluster) KillPod(name string) error {
	pids, err := find("environ", func(words []string) bool { return slices.Contains(words, "POD_NAME="+name) })
	if err != nil {
		return err
	}
	if len(pids) != 1 {
		return fmt.Errorf("%d processes are those of the pod %s", len(pids), name)
	}
	return syscall.Kill(pids[0], syscall.SIGKILL)
}

// OneUser reports whether the cluster runs in a user namespace in which containers can only run as root.
func OneUser() bool {
	content, err := os.ReadFile("/proc/self/uid_map")
	words := strings.Fields(string(content))
	return err == nil && len(words) == 3 && words[2] == "1"
}
