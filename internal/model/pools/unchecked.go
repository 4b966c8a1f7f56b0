//go:build !race && !poison

package pools

// Checking is false in builds that do not check the ownership of pooled values. Builds with the race detector or with
// the build tag poison check it.
const Checking = false

// claim is empty, since this build does not check ownership.
type claim struct{}

func (claim) ended() bool { return false }
func (claim) end()        {}

// owners is empty, since this build does not check ownership.
type owners struct{}

func (owners) taken() claim           { return claim{} }
func (owners) ownedBy(claim) bool     { return true }
func (owners) released(claim) bool    { return true }
func (owners) panicOf(string, string) {}

func isZero[T any](*T) bool { return true }
