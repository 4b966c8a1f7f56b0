package procstat

import (
	"io/fs"
	"testing"
	"testing/fstest"
)

// forbidden is a file system whose file self/io may not be read.
type forbidden struct{ fstest.MapFS }

func (f forbidden) Open(name string) (fs.File, error) {
	if name == "self/io" {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return f.MapFS.Open(name)
}

func (f forbidden) ReadFile(name string) ([]byte, error) {
	if name == "self/io" {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return f.MapFS.ReadFile(name)
}

// TestWithoutIO checks that all other figures are read if the kernel does not have or does not show the bytes of disks.
func TestWithoutIO(t *testing.T) {
	files := fstest.MapFS{"stat": {Data: []byte("btime 1700000000\n")}, "self/stat": {Data: []byte(example)}}
	for name, proc := range map[string]fs.FS{"missing": files, "forbidden": forbidden{files}} {
		if s, err := readFiles(proc); err != nil || s.HasIO || s.CPU == 0 || s.Start.IsZero() {
			t.Errorf("%s: %+v, error %v", name, s, err)
		}
	}
	files["self/io"] = &fstest.MapFile{Data: []byte("read_bytes: 1\nwrite_bytes: 2\n")}
	if s, err := readFiles(files); err != nil || !s.HasIO || s.ReadBytes != 1 || s.WrittenBytes != 2 {
		t.Errorf("with the file: %+v, error %v", s, err)
	}
	files["self/io"] = &fstest.MapFile{Data: []byte("read_bytes: x\n")}
	if s, err := readFiles(files); err == nil {
		t.Errorf("a malformed file: %+v", s)
	}
}
