package pools

import "bytes"

// Buffers is a pool of buffers. It is safe for concurrent use.
type Buffers struct{ pool *Pool[[]byte] }

// NewBuffers returns a pool of buffers of size bytes. The content of a buffer is undefined until its owner writes to
// it.
func NewBuffers(name string, size int) Buffers {
	p := New(name, func(b *[]byte) {
		*b = make([]byte, size)
		if Checking {
			overwrite(b)
		}
	}, nil)
	p.poison, p.intact = overwrite, overwritten
	return Buffers{p}
}

// Get returns a buffer that the caller owns until Release.
func (b Buffers) Get() Buffer { return Buffer{b.pool.Get()} }

// Unpooled returns a buffer of size bytes that belongs to no pool, so it is not reused after Release.
func Unpooled(name string, size int) Buffer {
	b := NewBuffers(name, size)
	b.pool.single = true
	return b.Get()
}

// Buffer is a handle that owns a buffer. The zero Buffer owns nothing.
type Buffer struct{ Handle[[]byte] }

// Bytes returns the whole buffer. The result must not be used after Release.
func (b *Buffer) Bytes() []byte { return *b.Value() }

// Replace replaces the owned buffer with another buffer, such as the result of an append to it. Bytes then returns the
// whole capacity of the new buffer.
func (b *Buffer) Replace(larger []byte) { *b.Value() = larger[:cap(larger)] }

// Move transfers the buffer to a new handle and returns the new handle. The receiver owns nothing afterwards.
func (b *Buffer) Move() Buffer { return Buffer{b.Handle.Move()} }

// poisoned is the content of released buffers while Checking is true. It is neither valid text nor a valid length.
var poisoned = bytes.Repeat([]byte{0xdb}, 4<<10)

func overwrite(b *[]byte) {
	for left := *b; len(left) > 0; {
		left = left[copy(left, poisoned):]
	}
}

func overwritten(b *[]byte) bool {
	for left := *b; len(left) > 0; {
		n := min(len(left), len(poisoned))
		if !bytes.Equal(left[:n], poisoned[:n]) {
			return false
		}
		left = left[n:]
	}
	return true
}
