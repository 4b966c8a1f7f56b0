package files

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	corev1 "k8s.io/api/core/v1"

	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/model/snapshot"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// running is a folder in a test that is read and watched.
type running struct {
	*Files
	t   *testing.T
	dir string
}

func run(t *testing.T, dir string, p pace) *running {
	t.Helper()
	return runLogged(t, dir, p, zap.NewNop())
}

func runLogged(t *testing.T, dir string, p pace, log *zap.Logger) *running {
	t.Helper()
	f := New(dir, log)
	f.pace = p
	fixture.Run(t, "the source", f.Run)
	return &running{f, t, dir}
}

// byEvent is a pace at which changes are noticed by events only: the poll interval is longer than any test.
var byEvent = pace{quiet: 20 * time.Millisecond, patience: time.Second, poll: time.Hour, retry: 20 * time.Millisecond}

func (r *running) waitSynced() {
	r.t.Helper()
	select {
	case <-r.Synced():
	case <-time.After(fixture.Patience):
		r.t.Fatal("the folder is not read")
	}
}

func (r *running) path(name string) string { return filepath.Join(r.dir, filepath.FromSlash(name)) }

func (r *running) write(name, text string) {
	r.t.Helper()
	write(r.t, r.path(name), text)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wait waits until the store has exactly these ConfigMaps. Each is given as its name and its value of "v".
func (r *running) wait(want ...string) {
	r.t.Helper()
	r.until("ConfigMaps "+strings.Join(want, " "), func() bool { return slices.Equal(r.have(), want) })
}

func (r *running) until(what string, condition func() bool) {
	r.t.Helper()
	deadline := time.After(fixture.Patience)
	for !condition() {
		select {
		case <-r.Store().Changed():
		case <-deadline:
			r.t.Fatalf("in vain: %s; there are %v and verdicts %v", what, r.have(), r.problems())
		}
	}
}

func (r *running) have() []string {
	var have []string
	s := r.Store().Take()
	for o := range snapshot.Of[*corev1.ConfigMap](s).All() {
		have = append(have, o.Name+"="+o.Data["v"])
	}
	return have
}

func (r *running) problems() []string {
	var list []string
	for _, v := range r.Verdicts() {
		for _, p := range v.Problems {
			list = append(list, v.Object.String()+" "+string(p.Severity)+": "+p.Message)
		}
	}
	return list
}

func configMap(name, value string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\ndata: {v: \"" + value + "\"}\n---\n"
}

func TestWatchesFiles(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	t.Run("changes", func(t *testing.T) {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "a.yaml"), configMap("a", "1"))
		r := run(t, dir, byEvent)
		r.waitSynced()
		r.wait("a=1")
		r.write("a.yaml", configMap("a", "2"))
		r.wait("a=2")
		r.write("b.yaml", configMap("b", "1")+configMap("c", "1"))
		r.wait("a=2", "b=1", "c=1")
		r.write("b.yaml", configMap("c", "1"))
		r.wait("a=2", "c=1")
		check(t, os.Rename(r.path("b.yaml"), r.path("b.txt")))
		r.wait("a=2")
		r.write("sub/deep/d.yaml", configMap("d", "1"))
		r.wait("a=2", "d=1")
		r.write("sub/deep/d.yaml", configMap("d", "2"))
		r.wait("a=2", "d=2")
		r.write(".swap", configMap("a", "3"))
		check(t, os.Rename(r.path(".swap"), r.path("a.yaml")))
		r.wait("a=3", "d=2")
		check(t, os.RemoveAll(r.path("sub")))
		r.wait("a=3")
		check(t, os.Remove(r.path("a.yaml")))
		r.wait()
		if got := r.problems(); len(got) != 0 {
			t.Errorf("verdicts %v", got)
		}
	})
}

func TestOnlyTheDifferenceChanges(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.yaml"), configMap("a", "1")+configMap("b", "1"))
	r := run(t, dir, byEvent)
	r.wait("a=1", "b=1")
	before, _ := snapshot.Of[*corev1.ConfigMap](r.Store().Take()).Get("default", "a")
	r.write("a.yaml", "# the line numbers change\n"+configMap("a", "1")+configMap("b", "2"))
	var taken *snapshot.Snapshot
	r.until("a new b", func() bool {
		taken = r.Store().Take()
		b, _ := snapshot.Of[*corev1.ConfigMap](taken).Get("default", "b")
		return b.Data["v"] == "2"
	})
	if len(taken.Changed) != 1 || taken.Changed[0].Name != "b" {
		t.Errorf("changed %v, want b", taken.Changed)
	}
	if after, _ := snapshot.Of[*corev1.ConfigMap](taken).Get("default", "a"); after != before {
		t.Error("an object that did not change is another copy")
	}
}

func TestMidEdit(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.yaml"), configMap("a", "1")+configMap("b", "1"))
	write(t, filepath.Join(dir, "z.yaml"), configMap("z", "1"))
	r := run(t, dir, byEvent)
	r.wait("a=1", "b=1", "z=1")
	r.write("a.yaml", configMap("a", "2")+"apiVersion: v1\nkind: ConfigMap\n metadata: {name: b}\n")
	r.wait("a=2", "b=1", "z=1")
	r.until("a verdict on the file", func() bool { return len(r.problems()) == 2 })
	if got := r.problems(); !strings.Contains(got[0], "File/a.yaml error: is not YAML") ||
		!strings.Contains(got[1], "ConfigMap/default/b keeps its previous state") {
		t.Errorf("verdicts %v", got)
	}
	r.write("a.yaml", configMap("a", "3")+strings.Replace(configMap("b", "2"), "data: {", "data: [", 1))
	r.wait("a=3", "b=1", "z=1")
	r.write("z.yaml", configMap("z", "2"))
	r.wait("a=3", "b=1", "z=2")
	r.write("a.yaml", configMap("a", "4")+"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\ndata: {v: 3}\n")
	r.wait("a=4", "b=1", "z=2")
	r.until("a verdict on the object", func() bool {
		return len(r.problems()) == 2 && strings.HasPrefix(r.problems()[0], "ConfigMap/default/b error: ")
	})
	r.write("a.yaml", configMap("a", "5"))
	r.wait("a=5", "z=2")
	r.until("no verdict", func() bool { return len(r.problems()) == 0 })
}

// TestMountedConfigMap checks that files are read again when they are replaced as the kubelet does it, by replacing a
// symbolic link to their directory.
func TestMountedConfigMap(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "..1", "a.yaml"), configMap("a", "1"))
	check(t, os.Symlink("..1", filepath.Join(dir, "..data")))
	check(t, os.Symlink("..data/a.yaml", filepath.Join(dir, "a.yaml")))
	r := run(t, dir, byEvent)
	r.wait("a=1")
	r.write("..2/a.yaml", configMap("a", "2"))
	check(t, os.Symlink("..2", r.path("..data_tmp")))
	check(t, os.Rename(r.path("..data_tmp"), r.path("..data")))
	check(t, os.RemoveAll(r.path("..1")))
	r.wait("a=2")
	if got := r.problems(); len(got) != 0 {
		t.Errorf("verdicts %v", got)
	}
}

func TestLinksInACircle(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "sub", "a.yaml"), configMap("a", "1"))
	check(t, os.Symlink("..", filepath.Join(dir, "sub", "up")))
	check(t, os.Symlink("sub", filepath.Join(dir, "again")))
	check(t, os.Symlink("nowhere", filepath.Join(dir, "lost.yaml")))
	s, verdicts, err := Load(dir)
	if err != nil || snapshot.Of[*corev1.ConfigMap](s).Len() != 1 {
		t.Fatalf("%v, %d ConfigMaps", err, snapshot.Of[*corev1.ConfigMap](s).Len())
	}
	if len(verdicts) != 1 || verdicts[0].Object != fileRef("lost.yaml") || verdicts[0].Accepted() {
		t.Errorf("verdicts %v, want an error on the link that leads nowhere", verdicts)
	}
}

func TestPollsWithoutEvents(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	write(t, filepath.Join(elsewhere, "a.txt"), configMap("a", "1"))
	check(t, os.Symlink(filepath.Join(elsewhere, "a.txt"), filepath.Join(dir, "a.yaml")))
	p := byEvent
	p.poll = 20 * time.Millisecond
	r := run(t, dir, p)
	r.wait("a=1")
	write(t, filepath.Join(elsewhere, "a.txt"), configMap("a", "2"))
	r.wait("a=2")
}

func TestFolderComesLate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "later")
	r := run(t, dir, byEvent)
	r.until("a verdict on the folder", func() bool { return len(r.problems()) == 1 })
	select {
	case <-r.Synced():
		t.Fatal("synced without a folder")
	default:
	}
	r.write("a.yaml", configMap("a", "1"))
	r.waitSynced()
	r.wait("a=1")
	r.until("no verdict", func() bool { return len(r.problems()) == 0 })
	check(t, os.Rename(dir, dir+"-gone"))
	r.until("a verdict on the folder", func() bool { return len(r.problems()) == 1 })
	r.wait("a=1")
	write(t, filepath.Join(dir, "b.yaml"), configMap("b", "1"))
	r.wait("b=1")
}

// TestUnreadableFolderIsLogged checks that an unreadable folder is logged at once, once for each reason, and that
// its recovery is logged. The log is necessary because the verdicts are not read before Synced.
func TestUnreadableFolderIsLogged(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "later")
	core, logged := observer.New(zap.InfoLevel)
	r := runLogged(t, dir, byEvent, zap.New(core))
	count := func(text string) int { return logged.FilterMessageSnippet(text).Len() }
	r.until("a word on the missing folder", func() bool { return count("no such file") == 1 })
	check(t, os.Symlink(dir, dir))
	r.until("a word on the circle", func() bool { return count("too many") == 1 })
	check(t, os.Remove(dir))
	r.write("a.yaml", configMap("a", "1"))
	r.waitSynced()
	if count("the manifests can be read now") != 1 || logged.Len() != 3 {
		t.Errorf("logged %v, want a word on each state of the folder", logged.All())
	}
	for _, entry := range logged.All()[:2] {
		if entry.Level != zap.WarnLevel || !strings.Contains(entry.Message, "503") {
			t.Errorf("%v: %q", entry.Level, entry.Message)
		}
	}
}

func TestLogsTheSameErrorOnce(t *testing.T) {
	core, logged := observer.New(zap.InfoLevel)
	f := New(filepath.Join(t.TempDir(), "nowhere"), zap.New(core))
	w := newWatcher(zap.NewNop())
	defer w.close()
	for range 3 {
		if f.refresh(w) {
			t.Fatal("a folder that is not there was read")
		}
	}
	if logged.Len() != 1 {
		t.Errorf("logged %v, want one word", logged.All())
	}
}

func TestUnreadableFolderKeepsItsFiles(t *testing.T) {
	dir := t.TempDir()
	f := newFolder(dir)
	write(t, filepath.Join(dir, "sub", "a.yaml"), configMap("a", "1"))
	write(t, filepath.Join(dir, "b.yaml"), configMap("b", "1"))
	if _, err := f.read(func(string) {}); err != nil {
		t.Fatal(err)
	}
	next := map[string]*file{}
	for _, path := range []string{"sub", "b.yaml"} {
		f.keep(next, failure{filepath.Join(dir, path), os.ErrPermission})
	}
	var list []*parsed
	for _, file := range next {
		list = append(list, file.parsed)
	}
	m := new(merger)
	objects, _ := m.merge(list)
	verdicts := m.verdicts()
	if len(objects) != 2 || len(verdicts) != 2 || verdicts[0].Accepted() || verdicts[1].Object != fileRef("sub") {
		t.Errorf("objects %v, verdicts %v", objects, verdicts)
	}
}

func TestEqualSizeAndTime(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.yaml")
	f := newFolder(dir)
	now := time.Now()
	for _, value := range []string{"1", "2", "3"} {
		write(t, path, configMap("a", value))
		check(t, os.Chtimes(path, now, now))
		list, err := f.read(func(string) {})
		check(t, err)
		objects, _ := new(merger).merge(list)
		store := snapshot.NewStore()
		store.Apply(objects, nil)
		o, ok := snapshot.Of[*corev1.ConfigMap](store.Take()).Get("default", "a")
		if !ok || o.Data["v"] != value {
			t.Fatalf("value %v, want %s: two writes within the grain of the clock", o, value)
		}
	}
}

func TestUnchangedFilesAreNotParsedAgain(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.yaml")
	write(t, path, configMap("a", "1"))
	past := time.Now().Add(-time.Hour)
	check(t, os.Chtimes(path, past, past))
	f := newFolder(dir)
	first, err := f.read(func(string) {})
	check(t, err)
	second, err := f.read(func(string) {})
	check(t, err)
	if first[0] != second[0] {
		t.Error("the file was parsed twice")
	}
}

func TestAFileWrittenAgainIsNotParsedAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.yaml")
	f := newFolder(path)
	write(t, path, configMap("a", "1"))
	first, err := f.read(func(string) {})
	check(t, err)
	write(t, path, configMap("a", "1"))
	second, err := f.read(func(string) {})
	check(t, err)
	if first[0] != second[0] {
		t.Error("the file was parsed twice")
	}
}

func TestLargeFile(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.yaml"), configMap("a", "1"))
	path := filepath.Join(dir, "large.yaml")
	write(t, path, "")
	check(t, os.Truncate(path, largest+1))
	s, verdicts, err := Load(dir)
	if err != nil || snapshot.Of[*corev1.ConfigMap](s).Len() != 1 || len(verdicts) != 1 ||
		!strings.Contains(verdicts[0].Problems[0].Message, "split it") {
		t.Errorf("%v, verdicts %v", err, verdicts)
	}
}

func TestVersionsDependOnTheText(t *testing.T) {
	version := func(text string) string {
		objects, _ := new(merger).merge([]*parsed{parse("a.yaml", []byte(text))})
		return objects[0].GetResourceVersion()
	}
	if version(configMap("a", "1")) != version("# comment\n"+configMap("a", "1")) {
		t.Error("a comment is another version")
	}
	if version(configMap("a", "1")) == version(configMap("a", "2")) {
		t.Error("other data is the same version")
	}
}

func TestVerdictsAreSorted(t *testing.T) {
	_, verdicts, err := Load("testdata/typos/in")
	if err != nil || !slices.IsSortedFunc(verdicts,
		func(a, b *report.Verdict) int { return report.Compare(a.Object, b.Object) }) {
		t.Errorf("%v, verdicts %v", err, verdicts)
	}
}
