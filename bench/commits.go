package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// notLess is the minimum ratio of this checkout's results to the results of the other commit.
const notLess = 0.98

// duel compares this checkout's Caddy with the Caddy of another commit. Both use the same manifests.
type duel struct {
	options options
	sites   [2]site
	// one has the fewest hosts and many has the most. The first element of each belongs to this checkout.
	one, many [2]*contestant
	rows      rows
}

// rows holds the figures that are compared.
type rows struct {
	requestsOne, requestsMany, change, memory, heap, start, run series
	// Processor times matter less to users, but they do not depend on other work of the machine.
	processorOne, processorMany, processorStart series
}

// compareCommits measures both Caddys in turn, prints the figures, and returns the bars.
func compareCommits(ctx context.Context, o options, s site, out io.Writer) ([]bar, error) {
	binaries, err := bothBinaries(ctx, o, s.folder)
	if err != nil {
		return nil, err
	}
	d := &duel{options: o}
	defer d.stop()
	for side, binary := range binaries {
		d.sites[side] = site{binary, s.folder, s.backend}
	}
	for _, step := range []func(context.Context) error{d.measureStarts, d.measureRequests, d.measureChanges} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return d.write(out)
}

// bothBinaries returns copies in folder of this checkout's Caddy and of the other commit's Caddy.
func bothBinaries(ctx context.Context, o options, folder string) (binaries [2]string, err error) {
	other, err := buildCommit(ctx, o.against, folder)
	if err != nil {
		return binaries, err
	}
	for side, binary := range []string{o.binary, other} {
		binaries[side] = filepath.Join(folder, fmt.Sprintf("caddy-%d", side))
		if err := copyProgram(binaries[side], binary); err != nil {
			return binaries, err
		}
	}
	return binaries, nil
}

// buildCommit builds the Caddy of a commit from a temporary checkout in folder. It keeps the binary in .cache/commits,
// by commit.
func buildCommit(ctx context.Context, commit, folder string) (string, error) {
	id, err := git(ctx, "rev-parse", "--verify", "--short=12", commit+"^{commit}")
	if err != nil {
		return "", err
	}
	binary, err := filepath.Abs(filepath.Join(".cache", "commits", id, "caddy"))
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(binary); err == nil {
		return binary, nil
	}
	source := filepath.Join(folder, "source")
	if _, err := git(ctx, "worktree", "add", "--detach", source, id); err != nil {
		return "", err
	}
	build := exec.CommandContext(ctx, "go", "build", "-o", binary, "./cmd/caddy")
	build.Dir, build.Stderr = source, os.Stderr
	err = build.Run()
	if _, left := git(context.WithoutCancel(ctx), "worktree", "remove", "--force", source); err == nil {
		err = left
	}
	if err != nil {
		return "", fmt.Errorf("building %s: %w", id, err)
	}
	return binary, nil
}

// copyProgram copies a binary. The linker writes a file piece by piece, and such a file is mapped in other portions,
// which adds 8 MB to the memory of the process. Copying both binaries removes this difference.
func copyProgram(to, from string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o755)
}

// git runs a git command in the current folder and returns its output without surrounding white space.
func git(ctx context.Context, arguments ...string) (string, error) {
	command := exec.CommandContext(ctx, "git", arguments...)
	var said strings.Builder
	command.Stderr = &said
	output, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(arguments, " "), err, strings.TrimSpace(said.String()))
	}
	return strings.TrimSpace(string(output)), nil
}

func (d *duel) stop() {
	for _, c := range append(d.one[:], d.many[:]...) {
		if c != nil {
			c.stop()
		}
	}
}

// measureStarts starts both sides with the most hosts in each round. The processes of the last round keep running.
func (d *duel) measureStarts(ctx context.Context) error {
	for round := range d.options.rounds {
		if err := inTurn(round, func(side int) error { return d.measureStart(ctx, side, round) }); err != nil {
			return err
		}
	}
	return nil
}

func (d *duel) measureStart(ctx context.Context, side, round int) error {
	if c := d.many[side]; c != nil {
		c.stop()
	}
	hosts := d.options.hosts[len(d.options.hosts)-1]
	c, err := startOurs(ctx, d.sites[side], fmt.Sprintf("many-%d-%d", side, round), d.applications(hosts))
	if d.many[side] = c; err != nil {
		return err
	}
	spent, errSpent := c.process.processorTime()
	heap, errHeap := c.liveHeap(ctx)
	took, errRun := c.runs(ctx)
	d.rows.run.add(side, took)
	d.rows.start.add(side, float64(c.toReady))
	d.rows.processorStart.add(side, float64(spent))
	d.rows.memory.add(side, float64(c.memory))
	d.rows.heap.add(side, float64(heap))
	return errors.Join(errSpent, errHeap, errRun, c.pause())
}

func (d *duel) applications(hosts int) applications {
	return applications{hosts: hosts, endpoints: 1, backend: d.sites[0].backend}
}

// measureRequests measures requests to the last host of both sides, with few hosts and with many.
func (d *duel) measureRequests(ctx context.Context) error {
	for side := range d.one {
		var err error
		d.one[side], err = startOurs(ctx, d.sites[side], fmt.Sprintf("one-%d", side),
			d.applications(d.options.hosts[0]))
		if err != nil {
			return err
		}
	}
	for round := range d.options.rounds {
		for _, pair := range []struct {
			of                  [2]*contestant
			requests, processor *series
		}{{d.one, &d.rows.requestsOne, &d.rows.processorOne}, {d.many, &d.rows.requestsMany, &d.rows.processorMany}} {
			err := inTurn(round, func(side int) error {
				c := pair.of[side]
				f, err := c.requests(ctx, d.options, c.hosts)
				pair.requests.add(side, f.perSecond)
				pair.processor.add(side, processorOf(f))
				return err
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *duel) measureChanges(ctx context.Context) error {
	return timeChanges(ctx, d.options, d.many, &d.rows.change)
}

// comparedRow is one row of the table.
type comparedRow struct {
	name string
	of   *series
	// costs reports whether smaller values are better.
	costs bool
	unit  func(float64) string
	// held reports whether there is a bar for the row.
	held bool
}

func (d *duel) table() []comparedRow {
	one, many := thousands(float64(d.options.hosts[0])), thousands(float64(d.many[0].hosts))
	r := &d.rows
	return []comparedRow{
		{"requests/s, host " + one + " of " + one, &r.requestsOne, false, thousands, true},
		{"processor time of a request, host " + one + " of " + one, &r.processorOne, true, shortDuration, false},
		{"requests/s, host " + many + " of " + many, &r.requestsMany, false, thousands, true},
		{"processor time of a request, host " + many + " of " + many, &r.processorMany, true, shortDuration, false},
		{"one change among " + many + " Ingresses", &r.change, true, duration, true},
		{"memory at " + many + " Ingresses", &r.memory, true, megabytesOf, true},
		{"live heap at " + many + " Ingresses", &r.heap, true, megabytesOf, true},
		{"start to ready at " + many + " Ingresses", &r.start, true, duration, true},
		{"translation, rendering and apply of " + many + " Ingresses", &r.run, true, duration, true},
		{"processor time until ready at " + many + " Ingresses", &r.processorStart, true, duration, false},
	}
}

// write prints the medians and returns the bars.
func (d *duel) write(out io.Writer) ([]bar, error) {
	var text strings.Builder
	fmt.Fprintf(&text,
		"## This checkout against %s\n\nMedians of %d rounds in turn, and of %d changes from a folder; a ratio is the "+
			"median of each round's, and above 1 where this checkout is better.\n\n| | this checkout | %[1]s | "+
			"ratio |\n| --- | ---: | ---: | ---: |\n",
		d.options.against, d.options.rounds, d.options.changes)
	var bars []bar
	for _, row := range d.table() {
		better := row.of
		if row.costs {
			better = better.swapped()
		}
		fmt.Fprintf(&text, "| %s | %s | %s | %.2f |\n", row.name, row.unit(row.of.median(0)),
			row.unit(row.of.median(1)), better.ratio())
		if row.held {
			bars = append(bars, better.atLeast(row.name+", against "+d.options.against, notLess))
		}
	}
	_, err := io.WriteString(out, text.String())
	return bars, err
}

func megabytesOf(bytes float64) string { return fmt.Sprintf("%.1f MB", bytes/(1<<20)) }

// unknownOption matches the error of a binary that does not support an option.
var unknownOption = regexp.MustCompile(`k8singress has no option \\?"(\w+)\\?"`)

// known removes the options that the binary does not support from a Caddyfile, because the other commit may be older
// than an option.
func (s site) known(ctx context.Context, folder string, caddyfile []byte) ([]byte, error) {
	file := filepath.Join(folder, "Caddyfile")
	for {
		if err := os.WriteFile(file, caddyfile, 0o644); err != nil {
			return nil, err
		}
		text, err := exec.CommandContext(ctx, s.binary, "adapt", "--config", file).CombinedOutput()
		if err == nil {
			return caddyfile, nil
		}
		found := unknownOption.FindSubmatch(text)
		if found == nil {
			return nil, fmt.Errorf("the Caddyfile cannot be read: %s", text)
		}
		line := regexp.MustCompile(`(?m)^\s*` + string(found[1]) + `\b.*\n`)
		if !line.Match(caddyfile) {
			return nil, fmt.Errorf("the Caddyfile has no line with the option %s", found[1])
		}
		caddyfile = line.ReplaceAll(caddyfile, nil)
	}
}
