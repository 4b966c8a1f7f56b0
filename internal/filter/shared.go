package filter

// Shared is what the filters of one table have in common, and what outlives the documents that they stand in. Its parts are safe for
// any goroutine.
type Shared struct{}

// NewShared returns what the filters of a new table share.
func NewShared() *Shared { return &Shared{} }
