package featuretests

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/model/option"
	"github.com/k8singress/k8singress/internal/tests/fixture"
	"github.com/k8singress/k8singress/internal/translate/annotations"
	"github.com/k8singress/k8singress/internal/translate/configmap"
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
	os.Exit(fixture.RunInProcesses(m, *processes))
}

// ignore turns the row of an annotation or key, such as key/hsts, into a row without effect. It returns false if there
// is no such row.
func ignore(row string) bool {
	kind, name, _ := strings.Cut(row, "/")
	switch kind {
	case "annotation":
		return ignoreIn(annotations.Table, name)
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
		byTest[proofs[row]] = append(byTest[proofs[row]], row)
	}
	for test, rows := range byTest {
		t.Run(test, func(t *testing.T) {
			t.Parallel()
			limit := 10*time.Second + 3*passing(t, test)
			for _, row := range rows {
				begin := time.Now()
				if passed, _ := runAlone(t, test, limit, "-without="+row); passed {
					t.Errorf("%s passes without %s", test, row)
				} else {
					t.Logf("%s fails without %s after %v", test, row, time.Since(begin).Round(time.Millisecond))
				}
			}
		})
	}
}

// passing checks that a test passes as long as no row is ignored, and returns how long it takes.
func passing(t *testing.T, test string) time.Duration {
	t.Helper()
	begin := time.Now()
	passed, output := runAlone(t, test, deadline)
	if !passed {
		t.Fatalf("it fails with all annotations and keys, or takes longer than %v:\n%s", deadline, output)
	}
	if strings.Contains(output, "\n--- SKIP: ") {
		t.Skipf("%s is skipped on this machine", test)
	}
	return time.Since(begin)
}

// runAlone runs a test, or one of its cases, in a process of its own. It returns whether the test passes before limit,
// and the output of the process.
func runAlone(t *testing.T, test string, limit time.Duration, flags ...string) (passed bool, output string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	name, sub, _ := strings.Cut(test, "/")
	pattern := "^" + name + "$/" + regexp.QuoteMeta(sub)
	flags = append(flags, "-test.run="+pattern, "-test.failfast", "-test.v", fmt.Sprintf("-test.timeout=%v", limit))
	text, err := exec.CommandContext(t.Context(), self, flags...).CombinedOutput()
	if failed := new(exec.ExitError); err != nil && !errors.As(err, &failed) {
		t.Fatal(err)
	}
	return err == nil, string(text)
}
