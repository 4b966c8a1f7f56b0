package compress

import (
	"sync"
	"sync/atomic"

	"github.com/k8singress/k8singress/internal/budget"
)

// gzipKiB and brotliKiB have the memory of an encoder by level, with its buffer, in KiB: the largest growth of the
// heap that responses of up to 4 MiB in pieces of 32 KiB have caused. TestEncoderBytes measures it. The tables of
// Brotli grow with the level, since the window stays the same. Its levels 10 and 11 also leave much garbage, for which
// 6 MiB are added.
var (
	gzipKiB   = [...]int64{1: 820, 1192, 1192, 940, 1064, 1064, 1000, 1000, 1400}
	brotliKiB = [...]int64{352, 512, 3400, 3400, 4100, 4100, 5500, 11700, 19900, 38400, 16000, 16000}
)

// kibibytes returns the bytes of a level. A level that the table does not have counts as the last one.
func kibibytes(table []int64, level int) int64 {
	if level < 0 || level >= len(table) {
		level = len(table) - 1
	}
	return table[level] << 10
}

// encoderMemory is made with the first response that is compressed: Caddy sets the memory limit when it starts.
// Clients that read slowly decide for how long an encoder is in use, so namespaces of backends share it.
var encoderMemory = sync.OnceValue(budget.Encoders.Budget)

// uncompressed counts the responses that were not compressed because there was no memory for an encoder.
var uncompressed atomic.Int64

// EncoderUsage returns how many bytes the encoders in use take, the limit, and how many responses were not compressed
// because there was no room.
func EncoderUsage() budget.Usage {
	u := encoderMemory().Usage()
	u.Refused = uncompressed.Load()
	return u
}
