package procstat

import (
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"
)

const example = "4242 (a) (b c) S 1 4242 4242 0 -1 4194560 2700 0 3 0 150 25 0 0 20 0 9 0 5000 734003200 6400 " +
	"18446744073709551615 1 1 0 0 0 0 0 0 2143420159 0 0 0 17 1 0 0 0 0 0 0 0 0 0 0 0 0 0\n"

func TestParse(t *testing.T) {
	booted, err := parseBoot("cpu  1 2 3\nbtime 1700000000\nprocesses 5\n")
	if err != nil {
		t.Fatal(err)
	}
	got, err := parseStat(example, booted, 4096)
	want := Stat{
		CPU: 1750 * time.Millisecond, Resident: 6400 * 4096, Virtual: 734003200,
		Start: time.Unix(1700000050, 0),
	}
	if err != nil || got != want {
		t.Errorf("parsed %+v, error %v, want %+v", got, err, want)
	}
	if err := got.parseIO("rchar: 1\nread_bytes: 4096\nwrite_bytes: 8192\n"); err != nil || !got.HasIO ||
		got.ReadBytes != 4096 || got.WrittenBytes != 8192 {
		t.Errorf("parsed %+v, error %v", got, err)
	}
}

func TestMalformed(t *testing.T) {
	for _, text := range []string{"", "1 (x) S", strings.Replace(example, " 150 ", " x ", 1)} {
		if got, err := parseStat(text, time.Time{}, 4096); err == nil {
			t.Errorf("%q is parsed as %+v", text, got)
		}
	}
	var s Stat
	for _, text := range []string{"", "read_bytes: 1\n", "read_bytes: -1\nwrite_bytes: 1\n"} {
		if err := s.parseIO(text); err == nil || s.HasIO {
			t.Errorf("%q is parsed as %+v", text, s)
		}
	}
	if _, err := parseBoot("cpu 1\n"); err == nil {
		t.Error("a file without btime is parsed")
	}
}

// TestRead compares the figures of this process with what the process knows itself.
func TestRead(t *testing.T) {
	s, err := Read()
	if runtime.GOOS != "linux" {
		if !errors.Is(err, ErrUnsupported) {
			t.Errorf("error %v", err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if age := time.Since(s.Start); age < -time.Minute || age > time.Hour {
		t.Errorf("the process started %s ago", age)
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if s.Virtual < int64(m.HeapAlloc) || s.Resident <= 0 || s.Resident > s.Virtual {
		t.Errorf("the sizes are %d and %d bytes, and the heap alone has %d", s.Resident, s.Virtual, m.HeapAlloc)
	}
	for before, deadline := s.CPU, time.Now().Add(10*time.Second); s.CPU <= before; {
		if s, err = Read(); err != nil || time.Now().After(deadline) {
			t.Fatalf("while the process works, its processor time stays %s; error %v", s.CPU, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(example, "btime 1\n", "read_bytes: 1\nwrite_bytes: 2\n")
	f.Fuzz(func(t *testing.T, stat, boot, io string) {
		booted, _ := parseBoot(boot)
		s, err := parseStat(stat, booted, 4096)
		if err != nil && s != (Stat{}) {
			t.Errorf("error %v, and %+v", err, s)
		}
		if err := s.parseIO(io); err != nil && s.HasIO {
			t.Errorf("error %v, and %+v", err, s)
		}
	})
}
