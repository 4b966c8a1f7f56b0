//go:build !linux

package procstat

// Read returns ErrUnsupported.
func Read() (Stat, error) { return Stat{}, ErrUnsupported }
