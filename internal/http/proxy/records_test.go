package proxy

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"testing"
)

// exhausted is a TLS connection without buffered data.
type exhausted struct{ net.Conn }

func (exhausted) Read([]byte) (int, error) { return 0, os.ErrDeadlineExceeded }

// TestPartsOfRecords checks that an incomplete record is detected, however the data is split.
func TestPartsOfRecords(t *testing.T) {
	text := []byte("\x17\x03\x03\x00\x02ab\x17\x03\x03\x00\x00\x17\x03\x03\x01\x00" + string(make([]byte, 256)))
	ends := map[int]bool{0: true, 7: true, 12: true, len(text): true}
	for piece := range 20 {
		r := &records{Conn: &scripted{text: bytes.NewReader(text), piece: piece + 1}}
		for at := 0; ; {
			if got := r.drained(exhausted{}, nil); got != ends[at] {
				t.Errorf("%d of %d bytes, %d at a time: %v", at, len(text), piece+1, got)
			}
			n, err := r.Read(make([]byte, 100))
			if errors.Is(err, io.EOF) {
				break
			}
			at += n
		}
	}
}
