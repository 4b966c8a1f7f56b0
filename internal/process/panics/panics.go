// Package panics catches panics, so that a panic affects only the object, module or connection that caused it.
package panics

import (
	"fmt"
	"runtime/debug"
)

// Panic is a recovered panic: the value that was passed to panic, and the stack trace.
type Panic struct {
	Value any
	Stack []byte
}

// Error returns the value of the panic as a string.
func (p *Panic) Error() string { return fmt.Sprint(p.Value) }

// Try calls the function do. If do panics, Try recovers and returns the panic, otherwise it returns nil.
func Try(do func()) (caught *Panic) {
	defer func() {
		if value := recover(); value != nil {
			caught = &Panic{value, debug.Stack()}
		}
	}()
	do()
	return nil
}
