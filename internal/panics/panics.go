// Package panics keeps a panic to the object, the module or the connection that caused it.
package panics

import (
	"fmt"
	"runtime/debug"
)

// Panic is what a function panicked with, and where.
type Panic struct {
	Value any
	Stack []byte
}

// Error returns the value as text.
func (p *Panic) Error() string { return fmt.Sprint(p.Value) }

// Try calls a function, and returns its panic, or nil where it returned.
func Try(do func()) (caught *Panic) {
	defer func() {
		if value := recover(); value != nil {
			caught = &Panic{value, debug.Stack()}
		}
	}()
	do()
	return nil
}
