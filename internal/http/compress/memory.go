package compress

import (
	"sync"
	"sync/atomic"

	"github.com/k8singress/k8singress/internal/process/budget"
)

// gzipKiB and brotliKiB contain the memory of an encoder and its buffer for each compression level, in KiB. The values
// are the largest heap growth that TestEncoderBytes measures for responses of up to 4 MiB, written in parts of 32 KiB.
// All levels use the same window size, so only Brotli's tables grow with the level. The values for Brotli's levels 10
// and 11 include 6 MiB for garbage, because these levels allocate and discard much memory.
var (
	gzipKiB   = [...]int64{1: 820, 1192, 1192, 940, 1064, 1064, 1000, 1000, 1400}
	brotliKiB = [...]int64{352, 512, 3400, 3400, 4100, 4100, 5500, 11700, 19900, 38400, 16000, 16000}
)

// kibibytes looks up the memory for a compression level in table, which is in KiB, and returns it in bytes. For a level
// that is not in the table, it returns the value of the last level.
func kibibytes(table []int64, level int) int64 {
	if level < 0 || level >= len(table) {
		level = len(table) - 1
	}
	return table[level] << 10
}

// encoderMemory returns the memory budget that all encoders share. It is created when the first response is compressed,
// because Caddy sets the process's memory limit only at startup. The budget is divided among the namespaces of the
// backends, because a slow client keeps its encoder in use for a long time. This way, slow clients of one namespace
// cannot use up the memory for other namespaces.
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
