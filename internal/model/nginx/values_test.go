package nginx_test

import (
	"strings"
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/model/nginx"
)

func TestTime(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"0": 0, "10": 10 * time.Second, "10s": 10 * time.Second, "500ms": 500 * time.Millisecond, "5m": 5 * time.Minute,
		"1h 30m": 90 * time.Minute, "1h30m": 90 * time.Minute, " 2d ": 48 * time.Hour, "1w": 168 * time.Hour,
		"1M": 720 * time.Hour,
		"1y": nginx.MaxSeconds * time.Second,
	} {
		if got, err := nginx.Time(text); err != nil || got != want {
			t.Errorf("%q is %v and %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "s", "-1s", "1x", "1.5s", "1 s", "1y1s", "2y", "99999999999999999999s",
		"9999999999y", "1S", "1sm", "+1"} {
		if got, err := nginx.Time(text); err == nil {
			t.Errorf("%q is taken for %v", text, got)
		}
	}
}

func TestLongTime(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"1h 30m": 90 * time.Minute, "2y": 2 * nginx.MaxSeconds * time.Second,
		"100y": 100 * nginx.MaxSeconds * time.Second,
	} {
		if got, err := nginx.LongTime(text); err != nil || got != want {
			t.Errorf("%q is %v and %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "1x", "100y 1s", "101y", "9999999999y"} {
		if got, err := nginx.LongTime(text); err == nil {
			t.Errorf("%q is taken for %v", text, got)
		}
	}
}

func TestSeconds(t *testing.T) {
	for text, want := range map[string]time.Duration{"1": time.Second, "3600": time.Hour,
		"31536000": nginx.MaxSeconds * time.Second} {
		if got, err := nginx.Seconds(1)(text); err != nil || got != want {
			t.Errorf("%q is %v and %v, want %v", text, got, err, want)
		}
	}
	for text, want := range map[string]time.Duration{"10s": 10 * time.Second, "5m": 5 * time.Minute,
		"1000ms": time.Second} {
		got, err := nginx.Seconds(1)(text)
		if err == nil || !nginx.IsUsable(err) || got != want {
			t.Errorf("%q is %v and %v, want %v with a remark", text, got, err, want)
		}
	}
	for _, text := range []string{"", "0", "0s", "-1", "31536001", "1.5", "500ms", "ten", "1y 1s",
		"99999999999999999999"} {
		if got, err := nginx.Seconds(1)(text); nginx.IsUsable(err) {
			t.Errorf("%q is taken for %v", text, got)
		}
	}
	if got, err := nginx.Seconds(0)("0"); err != nil || got != 0 {
		t.Errorf("0 is %v and %v where none is allowed", got, err)
	}
}

func TestSize(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "1": 1, "8k": 8 << 10, "8K": 8 << 10, "10m": 10 << 20, "2G": 2 << 30, "8589934591g": 8589934591 << 30,
	} {
		if got, err := nginx.Size(text); err != nil || got != want {
			t.Errorf("%q is %d and %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "m", "1z", "-1", "-1m", "+1m", "99999999999g", "8589934592g", "1mb", "1 m",
		"1.5m", "0x10"} {
		if got, err := nginx.Size(text); err == nil {
			t.Errorf("%q is taken for %d", text, got)
		}
	}
}

func TestWords(t *testing.T) {
	if v, err := nginx.OneOf("None", "Lax")("lax"); err != nil || v != "Lax" {
		t.Errorf("lax is %q and %v", v, err)
	}
	if v, err := nginx.OneOf("None", "Lax")("x"); err == nil || !strings.Contains(err.Error(), "None, Lax") {
		t.Errorf("x is %q, and the error is %v", v, err)
	}
	for _, text := range []string{"", "a b", "a;b", "a=b", "a\r\nb", "ä", "a/b", strings.Repeat("a", 129)} {
		if _, err := nginx.Token(text); err == nil {
			t.Errorf("%q is taken for a token", text)
		}
	}
	for text, want := range map[string]bool{"true": true, "false": false, "1": true, "0": false,
		"TRUE": true, "f": false} {
		if got, err := nginx.Bool(text); err != nil || got != want {
			t.Errorf("%q is %v and %v", text, got, err)
		}
	}
	for _, text := range []string{"", "yes", "on", "tRue"} {
		if _, err := nginx.Bool(text); err == nil {
			t.Errorf("%q is taken for a switch", text)
		}
	}
	for _, text := range []string{"", "On", "true", "1"} {
		if _, err := nginx.OnOff(text); err == nil {
			t.Errorf("%q is taken for on or off", text)
		}
	}
}

// FuzzValues checks that no text makes a parser panic, and that all accepted values are in range.
func FuzzValues(f *testing.F) {
	for _, text := range []string{"", "10", "10s", "1h 30m", "8m", "99999999999g", "-1", "true", "off",
		"\x00", "\xff"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if d, err := nginx.Time(text); err == nil && (d < 0 || d > nginx.MaxSeconds*time.Second) {
			t.Errorf("the time %q is %v", text, d)
		}
		if d, err := nginx.Seconds(1)(text); nginx.IsUsable(err) &&
			(d < time.Second || d > nginx.MaxSeconds*time.Second) {
			t.Errorf("the seconds %q are %v", text, d)
		}
	})
}

// FuzzWords does the same for sizes and names.
func FuzzWords(f *testing.F) {
	for _, text := range []string{"", "10", "8m", "99999999999g", "-1", "a;b", "X-Forwarded-For", "\x00", "\xff"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if n, err := nginx.Size(text); err == nil && n < 0 {
			t.Errorf("the size %q is %d", text, n)
		}
		if n, err := nginx.Number(1, 10)(text); err == nil && (n < 1 || n > 10) {
			t.Errorf("the number %q is %d", text, n)
		}
		if name, err := nginx.Token(text); err == nil && (name != text || strings.ContainsAny(name, "; =,\r\n\x00\"")) {
			t.Errorf("the name %q is %q", text, name)
		}
	})
}

func TestMeant(t *testing.T) {
	words := []string{"round_robin", "ewma", "HTTP", "HTTPS", "http_502"}
	for text, want := range map[string]string{
		"rond_robin": "; did you mean round_robin?", "Round-Robin": "; did you mean round_robin?",
		"htps":      "; did you mean HTTPS?",
		"something": "", "http_503": "", "": "",
	} {
		if got := nginx.Suggestion(text, words); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if _, err := nginx.OneOf(words...)("rond_robin"); err == nil ||
		!strings.HasSuffix(err.Error(), "; did you mean round_robin?") {
		t.Errorf("got %v", err)
	}
}
