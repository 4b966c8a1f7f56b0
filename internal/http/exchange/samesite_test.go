package exchange

import (
	"bufio"
	"os"
	"strings"
	"testing"
)

// TestRejectsSameSiteNone reads its cases from a file. Each line is "yes" or "no", followed by a user agent.
func TestRejectsSameSiteNone(t *testing.T) {
	file, err := os.Open("testdata/samesite.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines := 0
	for scanner := bufio.NewScanner(file); scanner.Scan(); lines++ {
		want, agent, _ := strings.Cut(scanner.Text(), " ")
		if got := refusesSameSiteNone(agent); got != (want == "yes") {
			t.Errorf("%q refuses SameSite=None: %t", agent, got)
		}
	}
	if lines < 10 {
		t.Fatalf("only %d lines", lines)
	}
}
