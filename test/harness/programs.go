// Package harness runs a cluster of the testbed for a test or a measurement, and Caddy processes in it.
//
// The cluster is in its own network namespace, which cannot be reached from outside. So a program that uses this
// package runs twice. When a user starts it, it calls Run, which starts a cluster and the same program again inside its
// network. In the second process, Inside returns the cluster.
package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Programs holds the paths of the binaries that a cluster and its tests need.
type Programs struct {
	// Testbed is the control plane, Echo the backend in pods, Caddy the ingress controller, Bench the load generator,
	// Pebble the certificate authority. Helm and Kubectl are the command-line tools.
	Testbed, Echo, Caddy, Bench, Pebble, Helm, Kubectl string
	// Image is the folder of the container image, as an OCI layout. If it is empty, the pods of the controller run
	// Caddy.
	Image string
}

// Needs selects what only some tests need.
type Needs struct {
	// Image requests the container image of a release for pods.
	Image bool
}

// Environment variables with the path of a binary to use instead of building it.
const (
	testbedVariable = "K8SINGRESS_TESTBED"
	echoVariable    = "K8SINGRESS_ECHO"
	caddyVariable   = "K8SINGRESS_CADDY"
	benchVariable   = "K8SINGRESS_BENCH"
	pebbleVariable  = "K8SINGRESS_PEBBLE"
	helmVariable    = "K8SINGRESS_HELM"
	kubectlVariable = "K8SINGRESS_KUBECTL"
	imageVariable   = "K8SINGRESS_IMAGE"
)

// target describes one binary and how it is built.
type target struct {
	path     *string
	variable string
	// name is the name of the file, module the folder in which to build, and pkg the package.
	name, module, pkg string
	flags             []string
	// env has additional environment variables for the build.
	env []string
}

// Build builds the binaries that no variable names. They stay in the folder .cache of the repository, and the next
// build reuses those that are up to date. So only the first build takes long.
func Build(ctx context.Context, needs Needs, log io.Writer) (Programs, error) {
	var p Programs
	root, err := repository(ctx)
	if err != nil {
		return p, err
	}
	version, err := output(ctx, "go", "list", "-m", "-f", "{{.Version}}", "k8s.io/kubernetes")
	if err != nil {
		return p, fmt.Errorf("finding the version of Kubernetes: %w", err)
	}
	for _, t := range targets(&p, root, version) {
		if err := t.build(ctx, filepath.Join(root, ".cache", "test"), log); err != nil {
			return p, err
		}
	}
	if needs.Image {
		p.Image, err = buildImage(ctx, root, log)
	}
	return p, err
}

// repository returns the folder that contains both modules.
func repository(ctx context.Context) (string, error) {
	module, err := output(ctx, "go", "list", "-m", "-f", "{{.Dir}}")
	if err != nil {
		return "", fmt.Errorf("finding the module of the tests: %w", err)
	}
	return filepath.Dir(module), nil
}

func targets(p *Programs, root, version string) []target {
	module := filepath.Join(root, "test")
	caddy := static(&p.Caddy, root)
	if RaceEnabled {
		caddy = target{path: &p.Caddy, name: "caddy-race", module: root, pkg: "./cmd/caddy", flags: []string{"-race"}}
	}
	caddy.variable = caddyVariable
	// Without a version, the API server would report v0.0.0-master, which some clients reject.
	ldflags := "-s -w -X k8s.io/component-base/version.gitVersion=" + version
	return []target{
		caddy,
		{path: &p.Bench, variable: benchVariable, name: "bench", module: root, pkg: "./bench",
			env: []string{"CGO_ENABLED=0"}},
		{path: &p.Helm, variable: helmVariable, name: "helm", module: filepath.Join(module, "chart"),
			pkg: "helm.sh/helm/v4/cmd/helm"},
		{
			path: &p.Kubectl, variable: kubectlVariable, name: "kubectl", module: module,
			pkg:   "k8s.io/kubernetes/cmd/kubectl",
			flags: []string{"-ldflags", ldflags},
		},
		{path: &p.Pebble, variable: pebbleVariable, name: "pebble", module: module, pkg: "./pebble"},
		{path: &p.Echo, variable: echoVariable, name: "echo", module: module, pkg: "./echo",
			env: []string{"CGO_ENABLED=0"}},
		{
			path: &p.Testbed, variable: testbedVariable, name: "testbed", module: module, pkg: "./testbed",
			flags: []string{"-ldflags", ldflags},
		},
	}
}

func (t target) build(ctx context.Context, folder string, log io.Writer) error {
	if path := os.Getenv(t.variable); path != "" {
		*t.path = path
		return nil
	}
	*t.path = filepath.Join(folder, t.name)
	if _, err := os.Stat(*t.path); errors.Is(err, os.ErrNotExist) {
		fmt.Fprintf(log, "building %s; with an empty Go cache this takes minutes\n", t.name)
	}
	arguments := append(append([]string{"build", "-o", *t.path}, t.flags...), t.pkg)
	build := exec.CommandContext(ctx, "go", arguments...)
	build.Dir, build.Env = t.module, append(os.Environ(), t.env...)
	build.Stdout, build.Stderr = log, log
	if err := build.Run(); err != nil {
		return fmt.Errorf("building %s: %w", t.name, err)
	}
	return nil
}

func output(ctx context.Context, command string, arguments ...string) (string, error) {
	out, err := exec.CommandContext(ctx, command, arguments...).Output()
	return strings.TrimSpace(string(out)), err
}

// environment returns the environment variables with the paths for the process inside.
func (p Programs) environment() []string {
	return []string{
		testbedVariable + "=" + p.Testbed, echoVariable + "=" + p.Echo, caddyVariable + "=" + p.Caddy,
		benchVariable + "=" + p.Bench,
		pebbleVariable + "=" + p.Pebble, helmVariable + "=" + p.Helm, kubectlVariable + "=" + p.Kubectl,
		imageVariable + "=" + p.Image,
	}
}
