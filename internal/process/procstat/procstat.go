// Package procstat reads what the kernel counts about this process.
package procstat

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Stat has the figures of a process.
type Stat struct {
	// CPU is the processor time that the process has used, in user mode and in the kernel.
	CPU time.Duration
	// Resident and Virtual are the sizes of its memory in bytes.
	Resident, Virtual int64
	// Start is the time when the process started.
	Start time.Time
	// HasIO is true if the kernel has the next two fields and has allowed to read them. It does not allow it if the
	// binary has capabilities of its own.
	HasIO bool
	// ReadBytes and WrittenBytes are the numbers of bytes that were read from and written to disks.
	ReadBytes, WrittenBytes int64
}

// ErrUnsupported is returned by Read on systems without /proc.
var ErrUnsupported = errors.New("this system has no /proc")

// ticks is the number of clock ticks per second in /proc/self/stat. Linux has the same value on all platforms that Go
// supports.
const ticks = 100

// Positions of fields in /proc/self/stat, counted from the field after the name of the program, which is the state.
const (
	userTime   = 11
	systemTime = 12
	startTime  = 19
	virtual    = 20
	resident   = 21
	fields     = 22
)

// parseStat parses /proc/self/stat. booted is the time when the kernel started, and pageSize the size of a page of
// memory in bytes.
func parseStat(text string, booted time.Time, pageSize int) (Stat, error) {
	// The name of the program is in parentheses, and may contain spaces and parentheses itself.
	_, rest, _ := cutLast(text, ")")
	words := strings.Fields(rest)
	if len(words) < fields {
		return Stat{}, fmt.Errorf("/proc/self/stat has %d fields after the name, want at least %d", len(words), fields)
	}
	var values [fields]int64
	for _, i := range []int{userTime, systemTime, startTime, virtual, resident} {
		n, err := strconv.ParseUint(words[i], 10, 63)
		if err != nil {
			return Stat{}, fmt.Errorf("/proc/self/stat: field %d after the name: %w", i, err)
		}
		values[i] = int64(n)
	}
	const tick = time.Second / ticks
	return Stat{
		CPU:     time.Duration(values[userTime]+values[systemTime]) * tick,
		Virtual: values[virtual], Resident: values[resident] * int64(pageSize),
		Start: booted.Add(time.Duration(values[startTime]) * tick),
	}, nil
}

// parseIO parses /proc/self/io.
func (s *Stat) parseIO(text string) error {
	var err error
	if s.ReadBytes, err = keyed(text, "read_bytes:"); err != nil {
		return fmt.Errorf("/proc/self/io: %w", err)
	}
	if s.WrittenBytes, err = keyed(text, "write_bytes:"); err != nil {
		return fmt.Errorf("/proc/self/io: %w", err)
	}
	s.HasIO = true
	return nil
}

// parseBoot returns the time when the kernel started, from /proc/stat.
func parseBoot(text string) (time.Time, error) {
	seconds, err := keyed(text, "btime")
	if err != nil {
		return time.Time{}, fmt.Errorf("/proc/stat: %w", err)
	}
	return time.Unix(seconds, 0), nil
}

// keyed returns the number in the line that begins with key.
func keyed(text, key string) (int64, error) {
	for line := range strings.Lines(text) {
		if words := strings.Fields(line); len(words) == 2 && words[0] == key {
			n, err := strconv.ParseUint(words[1], 10, 63)
			return int64(n), err
		}
	}
	return 0, fmt.Errorf("there is no line %s", key)
}

// cutLast slices s around the last instance of separator.
func cutLast(s, separator string) (before, after string, found bool) {
	if i := strings.LastIndex(s, separator); i >= 0 {
		return s[:i], s[i+len(separator):], true
	}
	return s, "", false
}
