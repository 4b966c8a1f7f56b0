package exchange

import (
	"regexp"
	"slices"
	"strconv"
)

// Patterns for user agents that reject cookies with SameSite=None, or treat them as SameSite=Strict. The list is
// "SameSite=None: Known Incompatible Clients", which the Chromium project has published.
var (
	onIOS         = regexp.MustCompile(`\(iP.+; CPU .*OS (\d+)[_\d]*.*\) AppleWebKit/`)
	onMac         = regexp.MustCompile(`\(Macintosh;.*Mac OS X (\d+)_(\d+)[_\d]*.*\) AppleWebKit/`)
	safari        = regexp.MustCompile(`Version/.* Safari/`)
	embeddedOnMac = regexp.MustCompile(
		`^Mozilla/[.\d]+ \(Macintosh;.*Mac OS X [_\d]+\) AppleWebKit/[.\d]+ \(KHTML, like Gecko\)$`)
	chromium    = regexp.MustCompile(`Chrom(?:e|ium)`)
	chromiumOf  = regexp.MustCompile(`Chrom[^ /]+/(\d+)[.\d]*`)
	ucBrowser   = regexp.MustCompile(`UCBrowser/`)
	ucBrowserOf = regexp.MustCompile(`UCBrowser/(\d+)\.(\d+)\.(\d+)[.\d]*`)
)

// refusesSameSiteNone reports whether a user agent handles cookies with SameSite=None incorrectly, so that the
// attribute must be omitted.
func refusesSameSiteNone(agent string) bool {
	return takesNoneForStrict(agent) || dropsNone(agent)
}

// takesNoneForStrict reports whether a user agent treats SameSite=None as Strict. This is a WebKit bug in iOS 12 and
// macOS 10.14.
func takesNoneForStrict(agent string) bool {
	if version := versionIn(onIOS, agent); version != nil && version[0] == 12 {
		return true
	}
	if !slices.Equal(versionIn(onMac, agent), []int{10, 14}) {
		return false
	}
	return safari.MatchString(agent) && !chromium.MatchString(agent) || embeddedOnMac.MatchString(agent)
}

// dropsNone reports whether a user agent drops cookies with SameSite=None, as Chromium 51 to 66 and UC Browser before
// 12.13.2 do.
func dropsNone(agent string) bool {
	if ucBrowser.MatchString(agent) {
		return slices.Compare(versionIn(ucBrowserOf, agent), []int{12, 13, 2}) < 0
	}
	version := versionIn(chromiumOf, agent)
	return version != nil && version[0] >= 51 && version[0] < 67
}

// versionIn returns the version numbers that pattern captures in a User-Agent, or nil if the pattern does not match.
func versionIn(pattern *regexp.Regexp, agent string) []int {
	found := pattern.FindStringSubmatch(agent)
	if found == nil {
		return nil
	}
	version := make([]int, 0, len(found)-1)
	for _, text := range found[1:] {
		// Ignore the error: the captured text consists of digits, and Atoi returns the maximum int if the number is too
		// large.
		number, _ := strconv.Atoi(text)
		version = append(version, number)
	}
	return version
}
