package featuretests

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// entry is one message of a log.
type entry struct{ Logger, Msg, Ingress string }

// entries returns the messages in a log file of Caddy.
func entries(t *testing.T, path string) (found []entry) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		var e entry
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		found = append(found, e)
	}
	return found
}

// TestCustomLogs checks that the controller's messages go to the logs of the Caddyfile that name it, whichever
// configuration started the engine.
func TestCustomLogs(t *testing.T) {
	folder := t.TempDir()
	in := newIngress(t)
	objects := class + service("one", "1", "127.0.0.1")
	for _, name := range []string{"first", "second", "third", "fourth"} {
		objects += rule(name, name+".example", "Prefix", "/", "one")
	}
	in.write("manifests.yaml", objects)
	file := func(name string) string { return filepath.Join(folder, name) }
	caddyfile := func(name, filter string) string {
		logs := fmt.Sprintf("log default {\noutput file %s\n}\nlog k8s {\n%s\noutput file %s\n}",
			file(name+"-default"), filter, file(name))
		return fmt.Sprintf("{\nadmin %s\n%s\nk8singress {\nhttp %s\nhttps %s\nmanifests %s\n}\n}\n",
			in.admin, logs, in.http, in.https, in.folder)
	}
	// fails sends a request that must be logged as an error.
	fails := func(host string) { in.expect(host+".example", "/", 502, "") }
	said := func(log, logger, ingress, text string) bool {
		return slices.ContainsFunc(entries(t, file(log)), func(e entry) bool {
			return e.Logger == logger && strings.HasSuffix(e.Ingress, ingress) && strings.Contains(e.Msg, text)
		})
	}
	expect := func(log, logger, ingress, text string, want bool) {
		t.Helper()
		if got := said(log, logger, ingress, text); got != want {
			t.Errorf("the log %s has messages of %s about %q: %v, want %v: %v",
				log, logger, ingress+text, got, want, entries(t, file(log)))
		}
	}

	in.loadCaddyfile(caddyfile("one", "include k8singress"))
	in.awaitReady()
	fails("first")
	in.eventually("the first messages", func() error {
		if !said("one", "k8singress", "", "ready: ") {
			return fmt.Errorf("the log has %v", entries(t, file("one")))
		}
		return nil
	})
	expect("one", "k8singress.http", "first", "", true)
	expect("one-default", "k8singress", "", "", false)

	in.loadCaddyfile(caddyfile("two", "include k8singress.http"))
	fails("second")
	expect("one", "k8singress.http", "second", "", false)
	expect("two", "k8singress.http", "second", "", true)
	expect("two", "k8singress", "", "", false)
	expect("two-default", "k8singress.http", "", "", false)

	in.refused(onThisMachine(caddyfile("never", "include k8singress")))
	fails("third")
	expect("never", "k8singress.http", "", "", false)
	expect("two", "k8singress.http", "third", "", true)

	in.loadCaddyfile(caddyfile("three", "exclude k8singress"))
	fails("fourth")
	expect("three", "k8singress.http", "", "", false)
	expect("three-default", "k8singress.http", "fourth", "", true)
}
