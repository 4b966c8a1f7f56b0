//go:build !race && !poison

package pools

// Checking reports whether this build checks the owners: builds with the race detector and with the tag poison do.
const Checking = false

// claim tells one owner of a value from the next one, while Checking is true.
type claim struct{}

func (claim) ended() bool { return false }
func (claim) end()        {}

// owners has the owner of a value, while Checking is true.
type owners struct{}

func (owners) taken() claim           { return claim{} }
func (owners) ownedBy(claim) bool     { return true }
func (owners) released(claim) bool    { return true }
func (owners) panicOf(string, string) {}

func isZero[T any](*T) bool { return true }
