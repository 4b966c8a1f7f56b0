package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// limitsCommand is the first argument that runs honest requests during attacks. `make limits` uses it.
const limitsCommand = "limits"

// limits holds the flags of that command.
type limits struct {
	binary string
	// duration is the length of each attack.
	duration time.Duration
	// share divides the number of clients in the attack on memory; 1 means all of them.
	share int
}

// quickLimits is the length of an attack in a quick run. quickShare is the value of share in a quick run.
const (
	quickLimits = 10 * time.Second
	quickShare  = 4
)

// siege starts a process with limited resources, attacks it, prints how the clients ended, and returns the bars.
type siege func(ctx context.Context, l limits, folder string, out io.Writer) ([]bar, error)

// runLimits runs each attack. It returns an error if a bar is not met.
func runLimits(ctx context.Context, arguments []string, out io.Writer) error {
	l, err := parseLimits(arguments)
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "k8singress-limits")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	var bars []bar
	for _, each := range []siege{attackDescriptors, attackMemory} {
		more, err := each(ctx, l, folder, out)
		if err != nil {
			return err
		}
		bars = append(bars, more...)
	}
	return errors.Join(writeBars(out, bars), missed(bars))
}

func parseLimits(arguments []string) (limits, error) {
	l := limits{share: 1}
	flags := flag.NewFlagSet("bench limits", flag.ContinueOnError)
	flags.StringVar(&l.binary, "binary", "bin/caddy", "the Caddy to attack")
	flags.DurationVar(&l.duration, "duration", time.Minute, "the length of each attack")
	quick := flags.Bool("quick", false,
		fmt.Sprintf("%v for each attack unless -duration is given, and 1/%d of the clients that use memory",
			quickLimits, quickShare))
	if err := flags.Parse(arguments); err != nil {
		return l, err
	}
	if *quick {
		l.share = quickShare
		if !given(flags, "duration") {
			l.duration = quickLimits
		}
	}
	if l.duration < time.Second {
		return l, errors.New("-duration must be at least 1s")
	}
	var err error
	l.binary, err = filepath.Abs(l.binary)
	return l, err
}

// given reports whether the user has set a flag.
func given(flags *flag.FlagSet, name string) bool {
	found := false
	flags.Visit(func(f *flag.Flag) { found = found || f.Name == name })
	return found
}

// missed returns an error if a bar is not met, or was not measured.
func missed(bars []bar) error {
	count := 0
	for _, b := range bars {
		if b.Met != "yes" {
			count++
		}
	}
	if count == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d bars were missed", count, len(bars))
}

// target is a process under attack. Its clients use addresses of this machine.
type target struct {
	*contestant
	backend *backend
	// health is the address of the health port.
	health string
}

const (
	// hostileAddresses is the number of addresses of hostile clients. Honest clients use 127.0.0.1.
	hostileAddresses = 10
	// uploadSize is the declared length of an upload that is never completed.
	uploadSize = 8 << 20
)

// limitedSettings allows uploads of uploadSize and enables brotli.
var limitedSettings = fmt.Sprintf(`---
apiVersion: v1
kind: ConfigMap
metadata: {name: controller, namespace: bench}
data: {enable-brotli: "true", proxy-body-size: "%d"}
`, 2*uploadSize)

// startTarget starts the binary in a shell, after a line that limits its resources.
func startTarget(ctx context.Context, l limits, folder, name, limit string) (*target, error) {
	t := &target{contestant: &contestant{}}
	below := filepath.Join(folder, name)
	if err := os.MkdirAll(below, 0o755); err != nil {
		return t, err
	}
	limited := filepath.Join(below, "caddy")
	script := fmt.Sprintf("#!/bin/sh\n%s\nexec '%s' \"$@\"\n", limit, l.binary)
	if err := os.WriteFile(limited, []byte(script), 0o755); err != nil {
		return t, err
	}
	addresses, err := freeAddresses(1)
	if err != nil {
		return t, err
	}
	t.health = addresses[0]
	if t.backend, err = startBackend(); err != nil {
		return t, err
	}
	t.backend.answers[noisePath] = answerWithBody(longNoise())
	return t, t.serve(ctx, site{limited, below, t.backend.address})
}

// serve starts the process with a host for HTTP and a host for HTTPS.
func (t *target) serve(ctx context.Context, s site) error {
	m, err := newMaker()
	if err != nil {
		return err
	}
	certificate, key, err := m.issue(hostName(secureHost))
	if err != nil {
		return err
	}
	more := fmt.Sprintf(secureIngress, hostName(secureHost)) + secretOf(secureHost, certificate, key) + limitedSettings
	a := applications{hosts: 1, endpoints: 1, backend: s.backend, more: more}
	if t.contestant, err = startOurs(ctx, s, "ours", a, "health "+t.health); err != nil {
		return err
	}
	return t.resume()
}

func (t *target) stop() {
	t.contestant.stop()
	if t.backend != nil {
		t.backend.stop()
	}
}

// lives reports whether the process is still running.
func (t *target) lives() bool {
	select {
	case <-t.process.ended:
		return false
	default:
		return true
	}
}

// livesBar is met if the process has survived. Otherwise it quotes the last line of the log.
func (t *target) livesBar(attack string) bar {
	b := bar{Work: "the process, " + attack, Bar: "lives", Measured: "it lives"}
	if !t.lives() {
		log := strings.Split(strings.TrimSpace(t.process.lastWords()), "\n")
		b.Measured = fmt.Sprintf("it ended; its log ends with: %.200s", log[len(log)-1])
	}
	return held(b, t.lives())
}

// descriptors returns the number of open files of the process. It returns 0 if this system does not list them.
func (t *target) descriptors() int {
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", t.process.command.Process.Pid))
	if err != nil {
		return 0
	}
	return len(open)
}

// dialHostile connects from one of the hostile addresses, with the socket options of a client on a network.
func dialHostile(ctx context.Context, address string, number int) (net.Conn, error) {
	from := &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(1+number%hostileAddresses))}
	dialer := net.Dialer{LocalAddr: from, Timeout: lateness, Control: asOnNetwork}
	return dialer.DialContext(ctx, "tcp4", address)
}

// writeAttack prints how each kind of hostile client ended.
func writeAttack(out io.Writer, head string, all []*hostile) error {
	var text strings.Builder
	text.WriteString(head + "\n\n| hostile clients | outcomes |\n| --- | --- |\n")
	for _, each := range all {
		text.WriteString(row(each.name, each.results.String()))
	}
	_, err := io.WriteString(out, text.String())
	return err
}

// longest returns the longest duration, or 0 if there is none.
func longest(all []time.Duration) time.Duration {
	if len(all) == 0 {
		return 0
	}
	return slices.Max(all)
}
