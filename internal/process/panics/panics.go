// Package panics catches panics, so that a panic affects only the object, module or connection that caused it.
package panics

import (
	"fmt"
	"runtime/debug"
)

// Panic is a recovered panic, with the value and the stack.
type Panic struct {
	Value any
	Stack []byte
}

// Error returns the value as text.
func (p *Panic) Error() string { return fmt.Sprint(p.Value) }

// Try calls do and returns its panic, or nil if it returned normally.
func Try(do func()) (caught *Panic) {
	defer func() {
		if value := recover(); value != nil {
			caught = &Panic{value, debug.Stack()}
		}
	}()
	do()
	return nil
}
