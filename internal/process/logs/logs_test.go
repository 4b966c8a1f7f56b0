package logs_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/caddyserver/caddy/v2"
	_ "github.com/caddyserver/caddy/v2/modules/logging"
	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/process/logs"
)

func init() {
	caddy.RegisterModule(new(app))
	caddy.RegisterModule(new(writer))
}

// app adds the logs of its configuration, as the k8singress app does.
type app struct {
	// Fails is the method that returns an error: "provision" or "start".
	Fails string `json:"fails,omitempty"`

	logs *logs.Config
}

func (*app) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "logs_test", New: func() caddy.Module { return new(app) }}
}

var errFails = errors.New("it never works")

func (a *app) Provision(ctx caddy.Context) error {
	a.logs = logs.Add(ctx)
	logs.Logger("k8singress").Info("provisioned")
	if a.Fails == "provision" {
		return errFails
	}
	return nil
}

func (a *app) Start() error {
	if a.Fails == "start" {
		return errFails
	}
	a.logs.Start()
	return nil
}

func (a *app) Stop() error {
	a.logs.Stop()
	return nil
}

func (a *app) Cleanup() error {
	a.logs.Close()
	return nil
}

// written holds the lines that were written, by writer.
var written = struct {
	sync.Mutex
	lines map[string][]string
}{lines: map[string][]string{}}

// writer is a log writer that keeps its lines in memory.
type writer struct {
	Name string `json:"name"`
}

func (*writer) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "caddy.logging.writers.logs_test", New: func() caddy.Module { return new(writer) }}
}

func (w *writer) String() string                      { return w.Name }
func (w *writer) WriterKey() string                   { return "logs_test:" + w.Name }
func (w *writer) OpenWriter() (io.WriteCloser, error) { return w, nil }
func (*writer) Close() error                          { return nil }
func (w *writer) Write(line []byte) (n int, err error) {
	written.Lock()
	defer written.Unlock()
	written.lines[w.Name] = append(written.lines[w.Name], string(line))
	return len(line), nil
}

// line is one line of a log.
type line struct {
	Level, Logger, Message, A, B, Caller, Stacktrace string
}

// lines returns the lines that the controller has written to a writer, and removes them.
func lines(t *testing.T, name string) (found []line) {
	t.Helper()
	written.Lock()
	defer written.Unlock()
	for _, text := range written.lines[name] {
		l := line{}
		if err := json.Unmarshal([]byte(strings.Replace(text, `"msg":`, `"message":`, 1)), &l); err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(l.Logger, "k8singress") {
			found = append(found, l)
		}
	}
	delete(written.lines, name)
	return found
}

// has checks the messages that the writers received.
func has(t *testing.T, want map[string][]string) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(want)) {
		var got []string
		for _, l := range lines(t, name) {
			got = append(got, l.Message)
		}
		if !slices.Equal(got, want[name]) {
			t.Errorf("the log %s has %q, want %q", name, got, want[name])
		}
	}
}

// config returns a configuration with the app and custom logs. Each log writes to the writer of the same name.
func config(app string, custom map[string]string) []byte {
	var all []string
	for name, rest := range custom {
		all = append(all, fmt.Sprintf(`%q:{"writer":{"output":"logs_test","name":%q}%s}`, log(name), name, rest))
	}
	const admin = `{"disabled":true,"config":{"persist":false}}`
	return fmt.Appendf(nil, `{"admin":%s,"logging":{"logs":{%s}},"apps":{%s}}`, admin, strings.Join(all, ","), app)
}

// log returns the name of the log of a writer: the writer's name without digits.
func log(writer string) string { return strings.TrimRight(writer, "0123456789") }

const running = `"logs_test":{}`

func load(t *testing.T, config []byte) {
	t.Helper()
	if err := caddy.Load(config, true); err != nil {
		t.Fatal(err)
	}
}

// stopAtEnd stops Caddy at the end of the test. It forgets lines of earlier tests, which may log after Caddy has
// stopped.
func stopAtEnd(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		if err := caddy.Stop(); err != nil {
			t.Error(err)
		}
	})
	written.Lock()
	defer written.Unlock()
	clear(written.lines)
}

// TestCustomLogs checks that messages go to the custom logs of the running configuration. Without a running
// configuration they go to the default log, even if that excludes them.
func TestCustomLogs(t *testing.T) {
	stopAtEnd(t)
	l := logs.Logger("k8singress")
	custom := func(number int) map[string]string {
		return map[string]string{
			fmt.Sprint("default", number): `,"exclude":["k8singress"]`,
			fmt.Sprint("k8s", number):     `,"include":["k8singress"]`,
		}
	}
	load(t, config("", custom(1)))
	l.Warn("before")
	has(t, map[string][]string{"default1": {"before"}, "k8s1": nil})

	load(t, config(running, custom(2)))
	l.Error("first")
	has(t, map[string][]string{"default2": nil, "k8s2": {"provisioned", "first"}})

	load(t, config(running, custom(3)))
	l.Error("second")
	has(t, map[string][]string{"default2": nil, "k8s2": {"provisioned"}, "default3": nil, "k8s3": {"second"}})

	for _, fails := range []string{"provision", "start"} {
		if err := caddy.Load(config(`"logs_test":{"fails":"`+fails+`"}`, custom(4)), true); err == nil {
			t.Fatal("it does not fail")
		}
		l.Error("still")
		has(t, map[string][]string{"default3": nil, "k8s3": {"provisioned", "still"}, "default4": nil, "k8s4": nil})
	}
	load(t, config("", custom(5)))
	l.Error("gone")
	has(t, map[string][]string{"k8s3": nil, "default5": {"gone"}, "k8s5": nil})

	load(t, config(running, custom(6)))
	if err := caddy.Stop(); err != nil {
		t.Fatal(err)
	}
	l.Error("after")
	has(t, map[string][]string{"default6": {"after"}, "k8s6": {"provisioned"}})
}

// TestFailedStart checks that messages go to the logs of a configuration that fails to start, if no other one is
// running, and to the default log afterwards.
func TestFailedStart(t *testing.T) {
	stopAtEnd(t)
	custom := map[string]string{"default1": `,"exclude":["k8singress"]`, "k8s1": `,"include":["k8singress"]`}
	if err := caddy.Load(config(`"logs_test":{"fails":"start"}`, custom), true); err == nil {
		t.Fatal("it does not fail")
	}
	logs.Logger("k8singress").Error("after")
	has(t, map[string][]string{"default1": {"after"}, "k8s1": {"provisioned"}})
}

// TestFilters checks that logs filter messages by logger names, including names below k8singress.
func TestFilters(t *testing.T) {
	stopAtEnd(t)
	load(t, config(running, map[string]string{
		"all":     "",
		"http":    `,"include":["k8singress.http"]`,
		"other":   `,"include":["http"]`,
		"default": `,"include":["k8singress"],"exclude":["k8singress.http"]`,
		"without": `,"exclude":["k8singress.http","admin"]`,
	}))
	logs.Logger("k8singress.http").Warn("a")
	logs.Logger("k8singress").Named("http").Named("more").Warn("b")
	logs.Logger("k8singress").Warn("c")
	logs.Logger("k8singress.httpx").Warn("d")
	has(t, map[string][]string{
		"all": {"provisioned", "a", "b", "c", "d"}, "http": {"a", "b"}, "other": nil,
		"default": {"provisioned", "c", "d"}, "without": {"provisioned", "c", "d"},
	})
}

// TestFields checks that logger names and fields survive a reload and the end of the configuration.
func TestFields(t *testing.T) {
	stopAtEnd(t)
	l := logs.Logger("k8singress").With(zap.String("a", "1")).Named("sub").With(zap.String("b", "2"))
	want := []line{{Level: "info", Logger: "k8singress.sub", Message: "m", A: "1", B: "2"}}
	logged := func(name string) {
		t.Helper()
		lines(t, name)
		for range 2 {
			l.Info("m")
			if got := lines(t, name); !slices.Equal(got, want) {
				t.Errorf("the log %s has %+v, want %+v", name, got, want)
			}
		}
	}
	for _, name := range []string{"default1", "default2"} {
		load(t, config(running, map[string]string{name: ""}))
		logged(name)
	}
	if err := caddy.Stop(); err != nil {
		t.Fatal(err)
	}
	logged("default2")
}

// TestLevels checks that the levels of the running configuration apply, and that entries of disabled levels cost
// nothing.
func TestLevels(t *testing.T) {
	stopAtEnd(t)
	l := logs.Logger("k8singress").With(zap.String("a", "1"))
	load(t, config(running, map[string]string{"default1": `,"level":"DEBUG"`, "error1": `,"level":"ERROR"`}))
	l.Debug("a")
	l.Error("b")
	has(t, map[string][]string{"default1": {"provisioned", "a", "b"}, "error1": {"b"}})
	load(t, config(running, map[string]string{"default2": `,"level":"WARN"`}))
	l.Info("c")
	l.Warn("d")
	has(t, map[string][]string{"default2": {"d"}})
	if l.Core().Enabled(zap.InfoLevel) || l.Check(zap.DebugLevel, "e") != nil {
		t.Error("levels are on that are off")
	}
	if n := testing.AllocsPerRun(100, func() { l.Debug("f") }); n > 0 {
		t.Errorf("an entry that is off allocates %v times", n)
	}
}

// TestSampling checks that the sampling of a log counts each entry once.
func TestSampling(t *testing.T) {
	stopAtEnd(t)
	const samples = `,"sampling":{"interval":3600000000000,"first":2,"thereafter":4}`
	load(t, config(running, map[string]string{"default1": samples}))
	lines(t, "default1")
	for range 10 {
		logs.Logger("k8singress").With(zap.String("a", "1")).Error("m")
	}
	if got := len(lines(t, "default1")); got != 4 {
		t.Errorf("of 10 messages the log has %d, want the first two, and each fourth of the rest", got)
	}
}

// TestCallers checks that only logs that want callers and stacks get them, and that these show the code that logs.
func TestCallers(t *testing.T) {
	stopAtEnd(t)
	l := logs.Logger("k8singress")
	// Caddy passes these options to modules only for a log with a filter.
	const options = `,"exclude":["none"],"with_caller":true,"with_stacktrace":"error"`
	load(t, config(running, map[string]string{"default1": options}))
	lines(t, "default1")
	l.Warn("a")
	l.Error("b")
	got := lines(t, "default1")
	if len(got) != 2 || !strings.Contains(got[0].Caller, "logs/logs_test.go:") || got[0].Stacktrace != "" {
		t.Errorf("the log has %+v", got)
	}
	if len(got) == 2 && !strings.Contains(got[1].Stacktrace, "TestCallers") {
		t.Errorf("the error has the stack %q", got[1].Stacktrace)
	}
	load(t, config(running, map[string]string{"default2": ""}))
	l.Error("c")
	if got := lines(t, "default2"); len(got) != 1 || got[0].Caller != "" || got[0].Stacktrace != "" {
		t.Errorf("the log has %+v", got)
	}
}
