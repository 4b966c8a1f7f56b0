package netconn

import "testing"

func TestHeaderLength(t *testing.T) {
	const header = "\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c\xcb\x00\x71\x07\xc6\x33\x64\x01\x12\x34\x01\xbb"
	data := []byte(header + "rest")
	for n := range data {
		got, err := headerLength(data[:n])
		if err != nil || got != 0 && (n < fixedPart || got != len(header)) {
			t.Fatalf("of %d bytes: %d, %v", n, got, err)
		}
	}
}
