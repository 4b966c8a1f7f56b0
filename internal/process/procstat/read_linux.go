package procstat

import "os"

// Read returns the figures of this process.
func Read() (Stat, error) {
	boot, err := os.ReadFile("/proc/stat")
	if err != nil {
		return Stat{}, err
	}
	booted, err := parseBoot(string(boot))
	if err != nil {
		return Stat{}, err
	}
	text, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return Stat{}, err
	}
	s, err := parseStat(string(text), booted, os.Getpagesize())
	if err != nil {
		return Stat{}, err
	}
	if text, err = os.ReadFile("/proc/self/io"); err == nil {
		err = s.parseIO(string(text))
	}
	if os.IsPermission(err) {
		err = nil
	}
	return s, err
}
