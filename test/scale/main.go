// Scale measures Caddy with a real API server that holds thousands of Ingresses: the time from its start until it is
// ready, its memory, the time until a request uses a change, and the effect of many changes on requests. It prints a
// table. `make bench` shows the rows that have a requirement.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"github.com/k8singress/k8singress/test/harness"
)

// options holds the flags.
type options struct {
	ingresses, secrets, endpoints int
	starts, changes               int
	// rounds and duration are the settings of the load while an Ingress changes.
	rounds          int
	duration        time.Duration
	endpointChanges int
	// status reports whether Caddy writes the status of all Ingresses, and its duration is measured.
	status bool
	// bars is the file for the bars. profiles is the folder for profiles of Caddy. Empty strings disable them.
	bars, profiles string
}

// changesIn returns the number of changes of an Ingress in a duration.
func (options) changesIn(d time.Duration) int { return int(d / changeInterval) }

func main() {
	// Child processes end together with the thread that started them.
	runtime.LockOSThread()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout)
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return
	}
	// The process inside the cluster has already printed its error.
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
		return harness.Run(ctx, harness.Needs{}, os.Stdout, os.Stderr)
	}
	if err := cluster.MakeAccount(ctx); err != nil {
		return err
	}
	figures, err := measure(ctx, cluster, o)
	if err != nil {
		return err
	}
	if err := figures.write(out, o); err != nil || o.bars == "" {
		return err
	}
	data, err := json.Marshal(figures.bars(o))
	if err != nil {
		return err
	}
	return os.WriteFile(o.bars, data, 0o644)
}

// quick holds the flags of a run that takes a few minutes. Flags on the command line take precedence.
var quick = map[string]string{
	"starts": "1", "changes": "10", "rounds": "5", "duration": "3s", "endpoint-changes": "1500", "status": "false",
}

func parse(arguments []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("scale", flag.ContinueOnError)
	flags.IntVar(&o.ingresses, "ingresses", 10000, "how many Ingresses, each with a Service and an EndpointSlice")
	flags.IntVar(&o.secrets, "secrets", 2000, "how many of the Ingresses have a TLS Secret")
	flags.IntVar(&o.endpoints, "endpoints", 3, "how many endpoints each Service has")
	flags.IntVar(&o.starts, "starts", 3, "how often Caddy is started")
	flags.IntVar(&o.changes, "changes", 50, "how many changes of an Ingress are timed")
	flags.IntVar(&o.rounds, "rounds", 9,
		"how often requests are measured while an Ingress changes, and without changes")
	flags.DurationVar(&o.duration, "duration", 5*time.Second, "the duration of each of these measurements")
	flags.IntVar(&o.endpointChanges, "endpoint-changes", 10000, "how many endpoints are replaced, 50 a second")
	flags.BoolVar(&o.status, "status", true,
		"have Caddy write the status of all Ingresses, and wait for it before anything else")
	flags.StringVar(&o.bars, "bars", "", "a file for the requirements and results, as JSON")
	flags.StringVar(&o.profiles, "profiles", "",
		"a folder to write profiles of Caddy to: its heap when ready and after everything, "+
			"and its processor time while an Ingress changes and while endpoints do")
	hurry := flags.Bool("quick", false, "run everything in a few minutes, with fewer and shorter rounds")
	if err := flags.Parse(arguments); err != nil {
		return o, err
	}
	if *hurry {
		if err := setOthers(flags, quick); err != nil {
			return o, err
		}
	}
	return o, o.check()
}

// setOthers sets the flags in values that are not on the command line.
func setOthers(flags *flag.FlagSet, values map[string]string) error {
	given := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	for name, value := range values {
		if given[name] {
			continue
		}
		if err := flags.Set(name, value); err != nil {
			return err
		}
	}
	return nil
}

func (o options) check() error {
	switch {
	case o.ingresses < firstChurning+churning:
		return fmt.Errorf("-ingresses must be at least %d", firstChurning+churning)
	case o.secrets < 0 || o.secrets > o.ingresses:
		return errors.New("-secrets must be at most -ingresses")
	case o.starts < 1 || o.changes < 2 || o.rounds < 1 || o.endpoints < 1:
		return errors.New("-starts, -rounds and -endpoints must be at least 1, -changes at least 2")
	case o.duration < changeInterval:
		return fmt.Errorf("-duration must be at least %v", changeInterval)
	case o.endpointChanges < 4*warming:
		return fmt.Errorf("-endpoint-changes must be at least %d", 4*warming)
	case o.ingresses*o.endpoints+o.endpointChanges > addresses:
		return fmt.Errorf("-ingresses with -endpoints each and -endpoint-changes are more than %d addresses", addresses)
	}
	return nil
}
