package compress

import (
	"sync"
	"sync/atomic"

	"github.com/k8singress/k8singress/internal/process/budget"
)

// gzipKiB and brotliKiB are the memory in KiB of an encoder with its buffer, by level. They are the largest heap growth
// for responses of up to 4 MiB, written in parts of 32 KiB. TestEncoderBytes measures it. All levels use the same
// window size, so only Brotli's tables grow with the level. Levels 10 and 11 also produce much garbage, for which 6 MiB
// are added.
var (
	gzipKiB   = [...]int64{1: 820, 1192, 1192, 940, 1064, 1064, 1000, 1000, 1400}
	brotliKiB = [...]int64{352, 512, 3400, 3400, 4100, 4100, 5500, 11700, 19900, 38400, 16000, 16000}
)

// kibibytes returns the memory of a level in bytes. A level that is not in the table is treated as the last one.
func kibibytes(table []int64, level int) int64 {
	if level < 0 || level >= len(table) {
		level = len(table) - 1
	}
	return table[level] << 10
}

// encoderMemory is the memory budget for all encoders. It is created with the first compressed response, because Caddy
// sets the memory limit at its start. A slow client keeps its encoder in use, so the namespaces of backends share the
// budget.
var encoderMemory = sync.OnceValue(budget.Encoders.Budget)

// uncompressed is the number of responses that were not compressed because the memory for encoders was used up.
var uncompressed atomic.Int64

// EncoderUsage returns the memory of the encoders in use, the limit, and the number of responses that were not
// compressed because of it. Memory is in bytes.
func EncoderUsage() budget.Usage {
	u := encoderMemory().Usage()
	u.Refused = uncompressed.Load()
	return u
}
