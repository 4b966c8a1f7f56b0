package exchange

import (
	"testing"
	"time"
)

// TestTimeOfDay checks that "expires @TIME" means the next such moment in the time zone of the clock.
func TestTimeOfDay(t *testing.T) {
	zone := time.FixedZone("", -5*60*60)
	now := time.Date(2000, time.February, 28, 15, 30, 0, 0, zone)
	for text, want := range map[string]string{
		"@15h30m1s": "Mon, 28 Feb 2000 20:30:01 GMT",
		"@15h30m":   "Tue, 29 Feb 2000 20:30:00 GMT",
		"@0":        "Tue, 29 Feb 2000 05:00:00 GMT",
		"@24h":      "Tue, 29 Feb 2000 05:00:00 GMT",
		"@1h 5m":    "Tue, 29 Feb 2000 06:05:00 GMT",
	} {
		of, err := ParseExpires(text, false)
		if err != nil {
			t.Fatal(err)
		}
		if got := momentOf(&of, now, nil).UTC().Format("Mon, 02 Jan 2006 15:04:05") + " GMT"; got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
