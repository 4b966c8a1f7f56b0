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

// notLess is the share of what another commit reaches that this checkout must reach.
const notLess = 0.98

// duel is this checkout's Caddy and that of another commit, with the same manifests and the same addresses to listen
// on.
type duel struct {
	options options
	sites   [2]site
	// one has the fewest hosts, many the most. Those of this checkout come first.
	one, many [2]*contestant
	rows      rows
}

// rows are the figures that are compared.
type rows struct {
	requestsOne, requestsMany, change, memory, heap, start series
	// Processor times say less about users, and are the same on a machine that has other work.
	processorOne, processorMany, processorStart series
}

// compareCommits measures this checkout's Caddy and that of another commit in turn, prints the figures of both, and
// returns the bars.
func compareCommits(ctx context.Context, o options, folder string, out io.Writer) ([]bar, error) {
	binaries, err := bothBinaries(ctx, o, folder)
	if err != nil {
		return nil, err
	}
	backend, err := startBackend()
	if err != nil {
		return nil, err
	}
	defer backend.stop()
	d := &duel{options: o}
	defer d.stop()
	for side, binary := range binaries {
		d.sites[side] = site{binary, folder, backend.address}
	}
	for _, step := range []func(context.Context) error{d.measureStarts, d.measureRequests, d.measureChanges} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return d.write(out)
}

// bothBinaries returns copies of this checkout's Caddy and of the other commit's, in a folder.
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

// buildCommit builds the Caddy of a commit, from a checkout of its own in a folder. What it builds stays in .cache, by
// commit.
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

// copyProgram copies a binary, so that both are written in the same way. What the linker wrote piece by piece is mapped
// in other portions, and that alone makes 8 MB of the memory that a process is said to have.
func copyProgram(to, from string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o755)
}

// git runs a command of git in this folder, and returns what it prints.
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

// measureStarts starts both with the most hosts in each round. Those of the last round stay.
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
	d.rows.start.add(side, float64(c.toReady))
	d.rows.processorStart.add(side, float64(spent))
	d.rows.memory.add(side, float64(c.memory))
	d.rows.heap.add(side, float64(heap))
	return errors.Join(errSpent, errHeap)
}

func (d *duel) applications(hosts int) applications {
	return applications{hosts: hosts, endpoints: 1, backend: d.sites[0].backend}
}

// measureRequests asks both for their last host, of few and of many.
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

// comparedRow is one line of the table.
type comparedRow struct {
	name string
	of   *series
	// costs says that less is better.
	costs bool
	unit  func(float64) string
	// held says that there is a bar for it.
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
		{"processor time until ready at " + many + " Ingresses", &r.processorStart, true, duration, false},
	}
}

// write prints the medians, and returns the bars.
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

// unknownOption is what a binary says of an option that it does not have.
var unknownOption = regexp.MustCompile(`k8singress has no option \\?"(\w+)\\?"`)

// known returns a Caddyfile without the options that the binary does not have: another commit may be older than some of
// them.
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
