package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// manyPorts is the number of ports that are open while one of them is added and removed.
const manyPorts = 200

// switchboard is a process with many TCP ports that gets its documents from the admin API.
type switchboard struct {
	*contestant
	addresses []string
	// all is the document with every port. fewer is the same document without the last port.
	all, fewer []byte
	// added and removed hold the duration of each change.
	added, removed []time.Duration
	// exchanged is the result of the connections on the other ports.
	exchanged *tally
}

// comparePorts adds and removes a port while all other ports are in use.
func comparePorts(ctx context.Context, o options, backend *streamBackend, folder string, out io.Writer) ([]bar, error) {
	b, err := startSwitchboard(ctx, site{binary: o.binary, folder: folder}, backend)
	if b != nil {
		defer b.stop()
	}
	if err != nil {
		return nil, err
	}
	if err := b.change(ctx, o.changes); err != nil {
		return nil, err
	}
	return b.bars(), b.write(out)
}

func startSwitchboard(ctx context.Context, s site, backend *streamBackend) (*switchboard, error) {
	c, err := newContestant(s.folder, "ports", 0)
	if err != nil {
		return nil, err
	}
	b := &switchboard{contestant: c}
	if b.addresses, err = freeAddresses(manyPorts); err != nil {
		return b, err
	}
	if err := b.makeDocuments(ctx, s.binary, streamManifests(backend, b.addresses, nil)); err != nil {
		return b, err
	}
	config := fmt.Appendf(nil, streamOptions, b.admin, "source none")
	takes := func(ctx context.Context) bool { return b.put(ctx, b.all) == nil }
	return b, b.launch(ctx, s.caddy(b.folder, "Caddyfile"), config, takes)
}

// freeAddresses returns a number of different free addresses.
func freeAddresses(count int) (addresses []string, err error) {
	var listeners []net.Listener
	defer func() {
		for _, l := range listeners {
			err = errors.Join(err, l.Close())
		}
	}()
	for range count {
		listener, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		listeners = append(listeners, listener)
		addresses = append(addresses, listener.Addr().String())
	}
	return addresses, nil
}

// makeDocuments renders a document from manifests with the render command, and removes the last port from a copy.
func (b *switchboard) makeDocuments(ctx context.Context, binary, manifests string) error {
	config := filepath.Join(b.folder, "render.caddyfile")
	err := errors.Join(writeManifest(b.manifests(), manifests),
		os.WriteFile(config, fmt.Appendf(nil, streamOptions, b.admin, "manifests "+b.manifests()), 0o644))
	if err != nil {
		return err
	}
	rendered, err := exec.CommandContext(ctx, binary, "k8singress", "render", "-f", b.manifests(), "--config",
		config).Output()
	if err != nil {
		return fmt.Errorf("rendering the ports: %w", err)
	}
	b.all, b.fewer, err = withAndWithout(rendered, "tcp/"+portOf(b.last()))
	return err
}

func (b *switchboard) last() string { return b.addresses[len(b.addresses)-1] }

// withAndWithout returns a document in a normalized format, and the same document without a port.
func withAndWithout(document []byte, port string) (with, without []byte, err error) {
	var whole object
	if err := json.Unmarshal(document, &whole); err != nil {
		return nil, nil, fmt.Errorf("reading the document: %w", err)
	}
	ports := branch(whole, "apps", "k8singress", "live", "ports")
	if ports[port] == nil {
		return nil, nil, fmt.Errorf("the document has no port %q among %d", port, len(ports))
	}
	if with, err = json.Marshal(whole); err != nil {
		return nil, nil, err
	}
	delete(ports, port)
	without, err = json.Marshal(whole)
	return with, without, err
}

// branch returns a part of a tree. It returns nil if that part does not exist; a nil object can be read like an empty
// one.
func branch(tree object, names ...string) object {
	for _, name := range names {
		tree, _ = tree[name].(object)
	}
	return tree
}

// put loads a document. The document is in effect when put returns.
func (b *switchboard) put(ctx context.Context, document []byte) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, "http://"+b.admin+"/k8singress/config",
		bytes.NewReader(document))
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("the document is answered with %s: %s", response.Status, text)
	}
	return err
}

// change removes and adds the last port repeatedly while all other ports exchange data.
func (b *switchboard) change(ctx context.Context, changes int) error {
	limited, cancel := context.WithCancel(ctx)
	defer cancel()
	others := b.addresses[:len(b.addresses)-1]
	tallies := make([]*tally, len(others))
	var group sync.WaitGroup
	for i, address := range others {
		tallies[i] = &tally{}
		group.Go(func() {
			if err := exchange(limited, address, tallies[i]); err != nil {
				tallies[i].fail(fmt.Errorf("port %s: %w", portOf(address), err))
			}
		})
	}
	begin := time.Now()
	err := b.alternate(ctx, changes)
	took := time.Since(begin)
	cancel()
	group.Wait()
	b.exchanged = join(tallies, took)
	return err
}

func (b *switchboard) alternate(ctx context.Context, changes int) error {
	for range changes {
		for _, to := range []struct {
			document []byte
			times    *[]time.Duration
			open     bool
		}{{b.fewer, &b.removed, false}, {b.all, &b.added, true}} {
			begin := time.Now()
			if err := b.put(ctx, to.document); err != nil {
				return err
			}
			*to.times = append(*to.times, time.Since(begin))
			if err := oneByte(b.last()); (err == nil) != to.open {
				return fmt.Errorf("a connection to the port that comes and goes ends with %w, its being there is %v",
					err, to.open)
			}
			wait(ctx, begin.Add(changePause))
		}
	}
	return ctx.Err()
}

const (
	// changePause is the time between two changes of a port, or between two reloads.
	changePause = 50 * time.Millisecond
	// exchangePause is the time between two exchanges on a connection. All connections together must leave the
	// processors to the changes.
	exchangePause = 200 * time.Millisecond
)

// exchange sends numbers on one connection until ctx ends, and checks that each comes back.
func exchange(ctx context.Context, address string, t *tally) error {
	conn, err := net.DialTimeout("tcp", address, lateness)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := conn.Write([]byte{wantEcho}); err != nil {
		return err
	}
	var sent, got [8]byte
	for number := uint64(1); ctx.Err() == nil; number++ {
		due := time.Now()
		binary.BigEndian.PutUint64(sent[:], number)
		if err := conn.SetDeadline(due.Add(lateness)); err != nil {
			return err
		}
		if _, err := conn.Write(sent[:]); err != nil {
			return err
		}
		if _, err := io.ReadFull(conn, got[:]); err != nil {
			return err
		}
		if got != sent {
			return fmt.Errorf("%x was sent, and %x came back", sent, got)
		}
		t.latencies = append(t.latencies, time.Since(due))
		wait(ctx, due.Add(exchangePause))
	}
	return nil
}

// portLimit is the maximum time for a change of one port.
const portLimit = 5 * time.Millisecond

// bars returns the bars for changes of ports.
func (b *switchboard) bars() []bar {
	added, removed := medianTime(b.added), medianTime(b.removed)
	loss := bar{
		Work: fmt.Sprintf("bytes on the other %d while a port comes and goes", manyPorts-1), Bar: "none is lost",
		Measured: fmt.Sprintf("%d of %d connections lost any, with %s exchanges", b.exchanged.failed, manyPorts-1,
			thousands(float64(len(b.exchanged.latencies)))),
	}
	if b.exchanged.first != nil {
		loss.Measured += fmt.Sprintf(" (%v)", b.exchanged.first)
	}
	change := bar{
		Work: fmt.Sprintf("adding and removing one of %d ports", manyPorts), Bar: "under " + milliseconds(portLimit),
		Measured: fmt.Sprintf("%s and %s (medians of %d each)", milliseconds(added), milliseconds(removed),
			len(b.added)),
	}
	return []bar{held(change, max(added, removed) < portLimit), held(loss, b.exchanged.failed == 0)}
}

func medianTime(times []time.Duration) time.Duration {
	return quantile(slices.Sorted(slices.Values(times)), 0.50)
}

// write prints the figures as Markdown.
func (b *switchboard) write(out io.Writer) error {
	var text strings.Builder
	fmt.Fprintf(&text,
		"\n## One of %d TCP ports\n\n%d times a port is removed and added, by a whole document that the admin API "+
			"takes. The time is that from the request to its answer, when the change is in effect. "+
			"On each of the other ports a connection stays open, and exchanges numbers.\n\n"+
			"| | p50 | p99 | longest |\n| --- | ---: | ---: | ---: |\n", manyPorts, len(b.added))
	for _, row := range []struct {
		name  string
		times []time.Duration
	}{{"add", b.added}, {"remove", b.removed}, {"exchange on the other ports", b.exchanged.latencies}} {
		sorted := slices.Sorted(slices.Values(row.times))
		fmt.Fprintf(&text, "| %s | %s | %s | %s |\n", row.name, milliseconds(quantile(sorted, 0.50)),
			milliseconds(quantile(sorted, 0.99)), milliseconds(quantile(sorted, 1)))
	}
	_, err := io.WriteString(out, text.String())
	return err
}
