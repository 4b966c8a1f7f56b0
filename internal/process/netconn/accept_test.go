package netconn_test

import (
	"errors"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/k8singress/k8singress/internal/process/netconn"
)

// failing is a listener whose Accept returns the results in order, and then net.ErrClosed. Nil is a connection.
type failing struct {
	net.Listener
	results []error
}

func (f *failing) Accept() (net.Conn, error) {
	if len(f.results) == 0 {
		return nil, net.ErrClosed
	}
	err := f.results[0]
	f.results = f.results[1:]
	return nil, err
}

// TestAccept checks that the pause doubles with each failure, up to a second, and starts again after a connection.
func TestAccept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tooMany := errors.New("too many open files")
		l := &failing{results: []error{nil, tooMany, tooMany, nil, tooMany, nil}}
		var after []time.Duration
		failures, begin := 0, time.Now()
		netconn.Accept(l, func(net.Conn) { after = append(after, time.Since(begin)) }, func(err error) {
			if failures++; !errors.Is(err, tooMany) {
				t.Errorf("the failure is %v", err)
			}
		})
		if want := []time.Duration{0, 15 * time.Millisecond, 20 * time.Millisecond}; !slices.Equal(after, want) {
			t.Errorf("connections are taken after %v, want %v", after, want)
		}
		if failures != 3 {
			t.Errorf("%d failures", failures)
		}
		l.results, begin = slices.Repeat([]error{tooMany}, 10), time.Now()
		netconn.Accept(l, nil, func(error) {})
		if took := time.Since(begin); took != (5+10+20+40+80+160+320+640+1000+1000)*time.Millisecond {
			t.Errorf("ten pauses take %v", took)
		}
	})
}
