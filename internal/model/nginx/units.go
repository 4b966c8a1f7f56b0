package nginx

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// MaxSeconds is the longest accepted time in seconds: a year.
const MaxSeconds = 365 * 24 * 60 * 60

// units are nginx's time suffixes. A number without a suffix is in seconds.
var units = map[string]time.Duration{
	"": time.Second, "ms": time.Millisecond, "s": time.Second, "m": time.Minute, "h": time.Hour,
	"d": 24 * time.Hour, "w": 7 * 24 * time.Hour, "M": 30 * 24 * time.Hour, "y": 365 * 24 * time.Hour,
}

// Time parses a time in nginx's format, such as 240s or 1h 30m. It returns an error for more than a year.
func Time(text string) (time.Duration, error) { return timeWithin(text, 1, "one year") }

// maxYears is the maximum of LongTime.
const maxYears = 100

// LongTime is like Time, but returns an error only for more than 100 years.
func LongTime(text string) (time.Duration, error) { return timeWithin(text, maxYears, "100 years") }

func timeWithin(text string, years int, limit string) (total time.Duration, err error) {
	maximum := time.Duration(years) * MaxSeconds * time.Second
	for rest := strings.TrimSpace(text); ; {
		n, unit, behind := cutTime(rest)
		size, known := units[unit]
		if n >= 0 && known && n <= int64(maximum/size) {
			total += time.Duration(n) * size
		} else {
			total = maximum + 1
		}
		if total > maximum {
			return 0, fmt.Errorf("%s is not a time: write a time of at most %s, such as 30s, 5m or 1h 30m",
				Quote(text), limit)
		}
		if rest = behind; rest == "" {
			return total, nil
		}
	}
}

// Timeout parses a time in Go's or nginx's format, such as 1m30s. It returns an error unless the time is greater than
// 0.
func Timeout(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil {
		d, err = Time(text)
	}
	if err != nil || d <= 0 || d > MaxSeconds*time.Second {
		return 0, fmt.Errorf("%s is not a valid time: write a time greater than 0 and of at most one year, such as 5s",
			Quote(text))
	}
	return d, nil
}

// cutTime parses the first number and its unit in a time such as 1h 30m. rest is the remaining string. n is negative if
// there is no number at the start.
func cutTime(text string) (n int64, unit, rest string) {
	digits := strings.TrimLeft(text, "0123456789")
	n, err := strconv.ParseInt(text[:len(text)-len(digits)], 10, 64)
	if err != nil {
		return -1, "", ""
	}
	rest = strings.TrimLeft(digits, "msdhwMy")
	return n, digits[:len(digits)-len(rest)], strings.TrimLeft(rest, " ")
}

// Seconds returns a parser for a number of seconds from minimum to MaxSeconds. The parser also accepts a time with a
// unit. In this case it returns a Remark in addition to the value, because ingress-nginx accepts only a number without
// a unit.
func Seconds(minimum int) func(string) (time.Duration, error) {
	return func(text string) (time.Duration, error) {
		if n, err := strconv.Atoi(text); err == nil && n >= minimum && n <= MaxSeconds {
			return time.Duration(n) * time.Second, nil
		}
		d, err := Time(text)
		if err != nil || d%time.Second != 0 || d < time.Duration(minimum)*time.Second ||
			!strings.ContainsAny(text, "smhdwMy") {
			return 0, fmt.Errorf("%s is not %s", Quote(text), AreSeconds(minimum))
		}
		return d, Remark(fmt.Sprintf("%s is interpreted as %d seconds: write the number of seconds alone, without a "+
			"unit",
			Quote(text), d/time.Second))
	}
}

// AreSeconds returns a description of the values that the parser from Seconds(minimum) accepts, for messages and
// documentation.
func AreSeconds(minimum int) string {
	return fmt.Sprintf("a number of seconds from %d to %d", minimum, MaxSeconds)
}

// Size parses a size in nginx's format: a number of bytes, or a number with the suffix k, m or g for powers of 1024.
func Size(text string) (int64, error) {
	digits, factor := text, int64(1)
	if text != "" {
		if shift := strings.IndexByte("kmg", text[len(text)-1]|0x20); shift >= 0 {
			digits, factor = text[:len(text)-1], int64(1)<<(10*(shift+1))
		}
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64/factor || strings.HasPrefix(digits, "+") {
		return 0, fmt.Errorf(
			"%s is not a size: write a number of bytes, or a number with the suffix k, m or g, such as 8m", Quote(text))
	}
	return n * factor, nil
}
