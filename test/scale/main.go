// Scale measures Caddy against a real API server that holds thousands of Ingresses: how long it takes from its start until
// it serves, how much memory it needs, and how long a change takes until a request sees it. It prints one table.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"

	"github.com/k8singress/k8singress/test/harness"
)

// options are the flags.
type options struct {
	ingresses, secrets int
	starts, changes    int
}

func main() {
	// A process that this one starts ends with the thread that started it.
	runtime.LockOSThread()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout)
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return
	}
	// The process inside has said what was wrong.
	if failed := new(exec.ExitError); !errors.As(err, &failed) {
		fmt.Fprintln(os.Stderr, "scale:", err)
	}
	os.Exit(1)
}

func run(ctx context.Context, arguments []string, out io.Writer) error {
	o, err := parse(arguments)
	if err != nil {
		return err
	}
	cluster, inside := harness.Inside()
	if !inside {
		return harness.Run(ctx, os.Stdout, os.Stderr)
	}
	if err := cluster.MakeAccount(ctx); err != nil {
		return err
	}
	figures, err := measure(ctx, cluster, o)
	if err != nil {
		return err
	}
	return figures.write(out, o)
}

func parse(arguments []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("scale", flag.ContinueOnError)
	flags.IntVar(&o.ingresses, "ingresses", 10000, "how many Ingresses, each with a Service and an EndpointSlice")
	flags.IntVar(&o.secrets, "secrets", 2000, "how many of the Ingresses have a TLS Secret")
	flags.IntVar(&o.starts, "starts", 3, "how often Caddy is started")
	flags.IntVar(&o.changes, "changes", 50, "how many changes of an Ingress are timed")
	if err := flags.Parse(arguments); err != nil {
		return o, err
	}
	if o.ingresses < 1 || o.starts < 1 || o.changes < 2 || o.secrets < 0 || o.secrets > o.ingresses {
		return o, errors.New("-ingresses and -starts are at least 1, -changes at least 2, -secrets at most -ingresses")
	}
	return o, nil
}
