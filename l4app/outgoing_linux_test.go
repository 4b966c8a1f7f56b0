package l4app

import (
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"
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

func TestTrain(t *testing.T) {
	for _, c := range []struct {
		sizes []int
		want  int
	}{
		{[]int{5}, 1}, {[]int{5, 5, 5}, 3}, {[]int{5, 5, 4, 4}, 3}, {[]int{5, 6}, 1}, {[]int{5, 0, 5}, 1}, {[]int{0, 0}, 1},
		{[]int{30000, 30000, 30000}, 2}, {[]int{65507, 1}, 1},
	} {
		if got := train(vectors(c.sizes...)); got != c.want {
			t.Errorf("%v begin with a train of %d, want %d", c.sizes, got, c.want)
		}
	}
}

// TestTrainThatDoesNotPass has a socket without checksums, on which the kernel takes no train.
func TestTrainThatDoesNotPass(t *testing.T) {
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	to, err := openLine(server.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer to.close()
	if err := unix.SetsockoptInt(to.socket, unix.SOL_SOCKET, unix.SO_NO_CHECK, 1); err != nil {
		t.Fatal(err)
	}
	var o outgoing
	var w way
	sizes := []int{7, 7, 7, 3}
	o.add(vectors(sizes...), &w)
	if o.count != 1 || !o.isTrain(0) {
		t.Fatalf("there are %d messages", o.count)
	}
	if n, err := sendMessages(to.socket, o.messages[:1]); !errors.Is(err, unix.EINVAL) {
		t.Fatalf("sent %d, %v; want a refusal", n, err)
	}
	if sent := o.singly(to.socket, 0); sent != (load{4, 24}) {
		t.Errorf("sent %+v", sent)
	}
	var got []int
	_ = server.SetReadDeadline(time.Now().Add(patience))
	for range sizes {
		n, _, err := server.ReadFrom(make([]byte, 100))
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, n)
	}
	if fmt.Sprint(got) != fmt.Sprint(sizes) {
		t.Errorf("got %v", got)
	}
	o.count = 0
	if o.add(vectors(sizes...), &w); o.count != len(sizes) {
		t.Errorf("the next ones go in %d messages", o.count)
	}
}
