package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// scaleFolder is the folder of test/scale's module, relative to the root of the repository.
const scaleFolder = "test"

// scale runs test/scale with the same binary. test/scale prints its own figures, and scale returns its bars.
func scale(ctx context.Context, o options, folder string, out io.Writer) ([]bar, error) {
	missing := bar{Work: "changes and memory at 10,000 Ingresses on a real API server", Bar: "see test/scale"}
	switch {
	case o.noScale:
		missing.Measured = "left out"
		return []bar{missing}, nil
	case !mayMakeNamespaces(ctx):
		missing.Measured = "it makes namespaces, which only root may do on this machine"
		return []bar{missing}, nil
	}
	fmt.Fprint(out, "\n## On a real API server\n\n")
	rows := filepath.Join(folder, "bars.json")
	if err := runScale(ctx, o, folder, append(o.scale, "-bars", rows), out); err != nil {
		return nil, err
	}
	data, err := os.ReadFile(rows)
	if err != nil {
		return nil, err
	}
	var bars []bar
	if err := json.Unmarshal(data, &bars); err != nil {
		return nil, fmt.Errorf("reading the bars of test/scale: %w", err)
	}
	return bars, nil
}

func mayMakeNamespaces(ctx context.Context) bool {
	return os.Getuid() == 0 || exec.CommandContext(ctx, "unshare", "--user", "--map-root-user", "--net",
		"true").Run() == nil
}

// runScale builds test/scale and runs it. If ctx ends, it terminates the program gently, so that it can remove its
// cluster.
func runScale(ctx context.Context, o options, folder string, arguments []string, out io.Writer) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	program := filepath.Join(folder, "scale")
	build := exec.CommandContext(ctx, "go", "build", "-o", program, "./scale")
	build.Dir, build.Stderr = scaleFolder, os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("building test/scale: %w", err)
	}
	command := exec.CommandContext(ctx, program, arguments...)
	command.Dir, command.Stdout, command.Stderr = scaleFolder, out, os.Stderr
	command.Env = append(os.Environ(), "K8SINGRESS_CADDY="+o.binary, "K8SINGRESS_BENCH="+self)
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = patience
	command.SysProcAttr = endWithParent(syscall.SIGTERM)
	if err := command.Run(); err != nil {
		return fmt.Errorf("test/scale: %w", err)
	}
	return nil
}
