package udp

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/k8singress/k8singress/internal/process/loops"
	"github.com/k8singress/k8singress/internal/tests/fixture"
	"github.com/k8singress/k8singress/internal/upstream/reach"
)

func vectors(sizes ...int) (all []unix.Iovec) {
	memory := make([]byte, datagramSize)
	for i, size := range sizes {
		v := unix.Iovec{Base: &memory[i]}
		v.SetLen(size)
		all = append(all, v)
	}
	return all
}

func TestCoalesce(t *testing.T) {
	for _, c := range []struct {
		lengths, sizes []int
		vectors        int
		datagrams      int
	}{
		{[]int{5}, nil, 1, 1}, {[]int{5, 5, 5}, nil, 3, 3}, {[]int{5, 5, 4, 4}, nil, 3, 3}, {[]int{5, 6}, nil, 1, 1},
		{[]int{5, 0, 5}, nil, 1, 1}, {[]int{0, 0}, nil, 1, 1}, {[]int{30000, 30000, 30000}, nil, 2, 2},
		{[]int{65507, 1}, nil, 1, 1},
		// Vectors of several datagrams that GRO joined.
		{[]int{20, 20}, []int{5, 5}, 2, 8}, {[]int{19, 5}, []int{5, 5}, 1, 4}, {[]int{20, 3, 5}, []int{5, 3, 5}, 2, 5},
		{[]int{20, 6}, []int{5, 3}, 1, 4}, {[]int{5, 6}, []int{5, 3}, 1, 1}, {[]int{5, 13}, []int{5, 5}, 2, 4},
		{[]int{300, 20, 5}, []int{5, 5, 5}, 2, 64}, {[]int{640}, []int{5}, 1, 128},
	} {
		if c.sizes == nil {
			c.sizes = c.lengths
		}
		n, carried := coalesce(vectors(c.lengths...), c.sizes)
		if n != c.vectors || carried.datagrams != c.datagrams {
			t.Errorf("%v of %v begin with a message of %d with %d datagrams, want %d with %d",
				c.lengths, c.sizes, n, carried.datagrams, c.vectors, c.datagrams)
		}
	}
}

// TestSendSegments checks a socket without checksums, on which the kernel rejects GSO messages.
func TestSendSegments(t *testing.T) {
	for name, c := range map[string]struct {
		lengths, sizes, want []int
		// next is the number of messages for the same vectors afterwards: a vector that arrived as a GSO message stays
		// one message.
		next int
	}{
		"of datagrams":    {[]int{7, 7, 7, 3}, []int{7, 7, 7, 3}, []int{7, 7, 7, 3}, 4},
		"of GSO messages": {[]int{14, 10}, []int{7, 7}, []int{7, 7, 7, 3}, 2},
		"that is so long": {[]int{100}, []int{1}, slices.Repeat([]int{1}, 100), 1},
	} {
		t.Run(name, func(t *testing.T) {
			server, to := uncheckedConn(t)
			var o outgoing
			var w destination
			o.add(vectors(c.lengths...), c.sizes, &w)
			if o.count != 1 || !o.isGSO(0) {
				t.Fatalf("there are %d messages", o.count)
			}
			if n, err := sendMessages(to.socket, o.messages[:1]); !errors.Is(err, unix.EINVAL) {
				t.Fatalf("sent %d, %v; want a refusal", n, err)
			}
			want := load{len(c.want), 0}
			for _, size := range c.want {
				want.bytes += size
			}
			if sent := o.sendSegments(to.socket, 0); sent != want {
				t.Errorf("sent %+v, want %+v", sent, want)
			}
			expectSizes(t, server, c.want)
			o.count = 0
			if o.add(vectors(c.lengths...), c.sizes, &w); o.count != c.next {
				t.Errorf("the next ones go in %d messages", o.count)
			}
		})
	}
}

// TestRefusedSegments checks that datagrams that cannot be sent are not counted and do not block.
func TestRefusedSegments(t *testing.T) {
	var o outgoing
	o.add(vectors(7, 7, 3), []int{7, 7, 3}, &destination{})
	const closed = -1
	if sent := o.sendSegments(closed, 0); sent != (load{}) {
		t.Errorf("sent %+v", sent)
	}
}

func uncheckedConn(t *testing.T) (server net.PacketConn, to upstreamConn) {
	t.Helper()
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	if to, err = (&Settings{Guard: loopback(), Outgoing: new(loops.Sockets)}).dial("test/web/1/udp",
		server.LocalAddr().String()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(to.close)
	withoutChecksums(t, to.socket)
	return server, to
}

func expectSizes(t *testing.T, server net.PacketConn, want []int) {
	t.Helper()
	var got []int
	_ = server.SetReadDeadline(time.Now().Add(fixture.Patience))
	for range want {
		n, _, err := server.ReadFrom(make([]byte, 100))
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, n)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
}

// loopback returns a guard that allows connections to this machine.
func loopback() *reach.Guard {
	guard := reach.NewGuard()
	guard.Configure(reach.Options{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"),
		netip.MustParsePrefix("::1/128")}})
	return guard
}
