package compress

import (
	"sync"
	"sync/atomic"

	"github.com/k8singress/k8singress/internal/process/budget"
)

// gzipKiB and brotliKiB contain the memory of an encoder and its buffer for each compression level, in KiB. Each value
// is the largest heap growth that TestEncoderBytes has measured. All levels use the same window size, so only Brotli's
// internal tables grow with the level. The values for Brotli's levels 10 and 11 include 6 MiB for garbage, because
// these levels allocate and discard much memory.
var (
	gzipKiB   = [...]int64{1: 820, 1192, 1192, 940, 1064, 1064, 1000, 1000, 1400}
	brotliKiB = [...]int64{352, 512, 3400, 3400, 4100, 4100, 5500, 11700, 19900, 38400, 16000, 16000}
)

// kibibytes returns, in bytes, the memory for a compression level. table contains the memory for each level in KiB. If
// it does not contain the level, the value of its last level is used.
func kibibytes(table []int64, level int) int64 {
	if level < 0 || level >= len(table) {
		level = len(table) - 1
	}
	return table[level] << 10
}

// encoderMemory returns the memory budget that all encoders share. It is created when the first response is compressed,
// because Caddy sets the process's memory limit only at startup. The budget is divided among the namespaces of the
// backends. A slow client keeps its encoder in use for a long time, and should not use up the memory for the backends
// of other namespaces.
var encoderMemory = sync.OnceValue(budget.Encoders.Budget)

// uncompressed is the number of responses that were sent uncompressed because the memory budget for encoders was
// exhausted.
var uncompressed atomic.Int64

// EncoderUsage returns the memory of the encoders in use and its limit, in bytes, and the number of responses that were
// sent uncompressed because the limit was reached.
func EncoderUsage() budget.Usage {
	u := encoderMemory().Usage()
	u.Refused = uncompressed.Load()
	return u
}
