package featuretests

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/k8singress/k8singress/internal/model/option"
	"github.com/k8singress/k8singress/internal/tests/fixture"
	"github.com/k8singress/k8singress/internal/translate/annotations"
	"github.com/k8singress/k8singress/internal/translate/configmap"
	"github.com/k8singress/k8singress/internal/translate/streams"
)

var (
	without = flag.String("without", "",
		"run the tests as if no object had this annotation or key, such as annotation/proxy-body-size or key/hsts")
	everyRow = flag.Bool("every-row", false, "let TestMutations try all annotations and keys instead of ten")
)

func TestMain(m *testing.M) {
	flag.Parse()
	if *without != "" && !ignore(*without) {
		fmt.Fprintf(os.Stderr, "-without: there is no %s: write annotation/NAME or key/NAME\n", *without)
		os.Exit(2)
	}
	folder, err := os.MkdirTemp("", "caddy")
	if err == nil {
		err = keepDataIn(folder)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "the folder of Caddy:", err)
		os.Exit(2)
	}
	code := fixture.RunInProcesses(m, *processes)
	_ = os.RemoveAll(folder)
	os.Exit(code)
}

// keepDataIn sets the folder in which Caddy keeps its data and its configuration in this process. The default is a
// folder of the user, where processes would share certificates and locks.
func keepDataIn(folder string) error {
	err := errors.Join(os.Setenv("XDG_DATA_HOME", folder), os.Setenv("XDG_CONFIG_HOME", folder))
	// Caddy has read the environment before this function runs.
	caddy.DefaultStorage.Path = caddy.AppDataDir()
	caddy.ConfigAutosavePath = filepath.Join(caddy.AppConfigDir(), filepath.Base(caddy.ConfigAutosavePath))
	return err
}

// ignore turns the row of an annotation or key, such as key/hsts, into a row without effect. It returns false if there
// is no such row.
func ignore(row string) bool {
	kind, name, _ := strings.Cut(row, "/")
	switch kind {
	case "annotation":
		return ignoreIn(annotations.Table, name) || ignoreIn(streams.Table, name)
	case "key":
		return ignoreIn(configmap.Table, name)
	}
	return false
}

func ignoreIn[S any](table option.Table[S, string], name string) bool {
	row := table.Find(name)
	if row != nil {
		row.Ignored = "because of -without"
	}
	return row != nil
}

// tenRows are the rows that TestMutations tries without -every-row. Their tests are quick, and fail without waiting.
var tenRows = []string{
	"annotation/auth-cache-duration", "annotation/backend-protocol", "annotation/load-balance",
	"annotation/proxy-ssl-protocols", "annotation/rewrite-target", "annotation/session-cookie-expires",
	"key/app-root", "key/forwarded-host-header", "key/generate-request-id", "key/limit-conn-zone-variable",
}

// TestMutations checks that the tests in proofsOfAnnotations and proofsOfKeys notice if the annotation or key has no
// effect: they must fail with the flag -without. To see how a test fails, run it with this flag.
func TestMutations(t *testing.T) {
	proofs := map[string]string{}
	for name, test := range proofsOfAnnotations {
		proofs["annotation/"+name] = test
	}
	for name, test := range proofsOfKeys {
		proofs["key/"+name] = test
	}
	rows := tenRows
	if *everyRow {
		rows = slices.Sorted(maps.Keys(proofs))
	}
	byTest := map[string][]string{}
	for _, row := range rows {
		if proofs[row] == "" {
			t.Fatalf("there is no test for %s", row)
		}
		byTest[proofs[row]] = append(byTest[proofs[row]], row)
	}
	for test, rows := range byTest {
		t.Run(test, func(t *testing.T) {
			t.Parallel()
			mutate(t, test, rows)
		})
	}
}

// mutate fails the test t unless another test fails without each of rows. With -every-row it may also time out, because
// the missing effect may be a condition that the test waits for.
func mutate(t *testing.T, test string, rows []string) {
	t.Helper()
	limit := deadline
	if duration := passing(t, test); *everyRow {
		limit = 10*time.Second + 3*duration
	}
	for _, row := range rows {
		begin := time.Now()
		got, output := runAlone(t, test, limit, "-without="+row)
		switch {
		case got == testPasses, got == testTimesOut && !*everyRow:
			t.Errorf("%s %s without %s:\n%s", test, got, row, output)
		default:
			t.Logf("%s %s without %s after %v", test, got, row, time.Since(begin).Round(time.Millisecond))
		}
	}
}

// passing checks that a test passes as long as no row is ignored, and returns how long it takes.
func passing(t *testing.T, test string) time.Duration {
	t.Helper()
	begin := time.Now()
	if got, output := runAlone(t, test, deadline); got != testPasses {
		t.Fatalf("%s %s with all annotations and keys:\n%s", test, got, output)
	} else if strings.Contains(output, "\n--- SKIP: ") {
		t.Skipf("%s is skipped on this machine", test)
	}
	return time.Since(begin)
}

// outcome is the result of a test in a process of its own.
type outcome string

const (
	testPasses   outcome = "passes"
	testFails    outcome = "fails"
	testTimesOut outcome = "times out"
)

// runAlone runs a test, or one of its cases, in a process of its own. It returns the outcome, and the output of the
// process. It fails the test t if the process ends in another way, for example because of a panic or an unknown row.
func runAlone(t *testing.T, test string, limit time.Duration, flags ...string) (got outcome, output string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	name, sub, _ := strings.Cut(test, "/")
	pattern := "^" + name + "$/" + regexp.QuoteMeta(sub)
	flags = append(flags, "-test.run="+pattern, "-test.failfast", "-test.v", fmt.Sprintf("-test.timeout=%v", limit))
	alone := exec.CommandContext(t.Context(), self, flags...)
	// A process that the test has left behind keeps the output open.
	alone.WaitDelay = 10 * time.Second
	text, err := alone.CombinedOutput()
	output = string(text)
	switch code := alone.ProcessState.ExitCode(); {
	case err == nil:
		return testPasses, output
	case code == 1 && strings.Contains(output, "\n--- FAIL: "+name+" ("):
		return testFails, output
	case code == 2 && strings.Contains(output, "\npanic: test timed out after "):
		return testTimesOut, output
	}
	t.Fatalf("%s %s neither passes nor fails: %v\n%s", test, flags, err, output)
	return "", ""
}
