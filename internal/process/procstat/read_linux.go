package procstat

import (
	"errors"
	"io/fs"
	"os"
)

// Read returns the figures of this process.
func Read() (Stat, error) { return readFiles(os.DirFS("/proc")) }

// readFiles returns the figures of this process from the files of /proc.
func readFiles(proc fs.FS) (Stat, error) {
	boot, err := fs.ReadFile(proc, "stat")
	if err != nil {
		return Stat{}, err
	}
	booted, err := parseBoot(string(boot))
	if err != nil {
		return Stat{}, err
	}
	text, err := fs.ReadFile(proc, "self/stat")
	if err != nil {
		return Stat{}, err
	}
	s, err := parseStat(string(text), booted, os.Getpagesize())
	if err != nil {
		return Stat{}, err
	}
	text, err = fs.ReadFile(proc, "self/io")
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		// A kernel without TASK_IO_ACCOUNTING has no such file, and a binary with capabilities may not read it.
		return s, nil
	}
	if err == nil {
		err = s.parseIO(string(text))
	}
	return s, err
}
