package harness

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// processes returns the processes whose first argument is the name of a component and whose other arguments contain the
// folder.
func processes(component, folder string) ([]int, error) {
	return find("cmdline", func(words []string) bool {
		return len(words) > 1 && words[1] == component && strings.Contains(strings.Join(words, " "), folder)
	})
}

// find returns the processes for which match accepts the words of a file in /proc.
func find(file string, match func(words []string) bool) ([]int, error) {
	files, err := filepath.Glob("/proc/[0-9]*/" + file)
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, file := range files {
		// A process may end during the search.
		data, _ := os.ReadFile(file)
		if !match(strings.Split(string(data), "\x00")) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			return nil, err
		}
		pids = append(pids, pid)
	}
	return pids, nil
}

// memory returns a field of /proc/PID/status, such as VmRSS, in bytes.
func memory(pid int, field string) (int64, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(data)) {
		rest, found := strings.CutPrefix(line, field+":")
		if !found {
			continue
		}
		kilobytes, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
		return kilobytes << 10, err
	}
	return 0, fmt.Errorf("process %d has no %s", pid, field)
}

// tick is the unit of processor time in /proc. It is the same on every Linux that Go supports.
const tick = 10 * time.Millisecond

// cpu returns the processor time of a process and its threads from /proc/PID/stat.
func cpu(pid int) (time.Duration, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The name is in parentheses and may contain spaces. In the rest, user and system time are the 12th and 13th words.
	words := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	const user, system = 11, 12
	if len(words) <= system {
		return 0, fmt.Errorf("/proc/%d/stat has %d words", pid, len(words))
	}
	var sum time.Duration
	for _, word := range []string{words[user], words[system]} {
		ticks, err := strconv.ParseInt(word, 10, 64)
		if err != nil {
			return 0, err
		}
		sum += time.Duration(ticks) * tick
	}
	return sum, nil
}
