package exchange

import (
	"regexp"
	"slices"
	"strconv"
)

// The user agents that drop a cookie with SameSite=None, or take it for SameSite=Strict, as the Chromium project has
// published them under "SameSite=None: Known Incompatible Clients".
var (
	onIOS         = regexp.MustCompile(`\(iP.+; CPU .*OS (\d+)[_\d]*.*\) AppleWebKit/`)
	onMac         = regexp.MustCompile(`\(Macintosh;.*Mac OS X (\d+)_(\d+)[_\d]*.*\) AppleWebKit/`)
	safari        = regexp.MustCompile(`Version/.* Safari/`)
	embeddedOnMac = regexp.MustCompile(`^Mozilla/[.\d]+ \(Macintosh;.*Mac OS X [_\d]+\) AppleWebKit/[.\d]+ \(KHTML, like Gecko\)$`)
	chromium      = regexp.MustCompile(`Chrom(?:e|ium)`)
	chromiumOf    = regexp.MustCompile(`Chrom[^ /]+/(\d+)[.\d]*`)
	ucBrowser     = regexp.MustCompile(`UCBrowser/`)
	ucBrowserOf   = regexp.MustCompile(`UCBrowser/(\d+)\.(\d+)\.(\d+)[.\d]*`)
)

// refusesSameSiteNone says whether a user agent does not know SameSite=None.
func refusesSameSiteNone(agent string) bool {
	return takesNoneForStrict(agent) || dropsNone(agent)
}

// takesNoneForStrict is a bug of WebKit in iOS 12 and macOS 10.14.
func takesNoneForStrict(agent string) bool {
	if version := versionIn(onIOS, agent); version != nil && version[0] == 12 {
		return true
	}
	if !slices.Equal(versionIn(onMac, agent), []int{10, 14}) {
		return false
	}
	return safari.MatchString(agent) && !chromium.MatchString(agent) || embeddedOnMac.MatchString(agent)
}

// dropsNone is what Chromium 51 to 66 does, and UC Browser before 12.13.2.
func dropsNone(agent string) bool {
	if ucBrowser.MatchString(agent) {
		return slices.Compare(versionIn(ucBrowserOf, agent), []int{12, 13, 2}) < 0
	}
	version := versionIn(chromiumOf, agent)
	return version != nil && version[0] >= 51 && version[0] < 67
}

// versionIn returns the numbers that a pattern finds, or nil.
func versionIn(pattern *regexp.Regexp, agent string) []int {
	found := pattern.FindStringSubmatch(agent)
	if found == nil {
		return nil
	}
	version := make([]int, 0, len(found)-1)
	for _, text := range found[1:] {
		// What is no number is too large for one.
		number, _ := strconv.Atoi(text)
		version = append(version, number)
	}
	return version
}
