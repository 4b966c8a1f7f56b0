package message_test

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/http/message"
)

func TestAmbiguous(t *testing.T) {
	for path, want := range map[string]bool{
		"/": false, "/a/b": false, "/a/": false, "/.a": false, "/a.b": false, "/...": false, "/..a": false,
		"/a%20b": false, "/%C3%A9": false,
		"/100%25": false, "/100%25x": false, "/a%zz": false, "/a%2": false,
		"//": true, "/a//b": true, "/.": true, "/..": true, "/./a": true, "/../a": true, "/a/..": true,
		"/a;b": true, `/a\b`: true,
		"/a%2fb": true, "/a%2Fb": true, "/a%2e": true, "/a%5Cb": true, "/a%3bb": true, "/%252e": true, "/%2561": true,
	} {
		if got := message.Ambiguous(path); got != want {
			t.Errorf("%s: %t, want %t", path, got, want)
		}
	}
}

func TestReadings(t *testing.T) {
	for path, want := range map[string]string{
		"/a/b":                "/a/b",
		"/a/../b":             "/a/../b /b",
		"/a//../b":            "/a//../b /a/b /b",
		"/a/..":               "/a/.. /",
		"/a/.":                "/a/. /a /a/",
		"/..":                 "/.. /",
		"/a/%2e%2e/b":         "/a/%2e%2e/b /b /a/../b",
		"/a%2f..%2fb":         "/a%2f..%2fb /a/../b /b",
		"/a/..;x/b":           "/a/..;x/b /a/../b /b",
		"/a/..%3bx/b":         "/a/..%3bx/b /a/../b /b /a/..;x/b",
		"/a/..;%2fb":          "/a/..;%2fb /a/.. / /a/..;/b /a/../b /b",
		`/a%5c..%5cb`:         `/a%5c..%5cb /a\..\b /a/../b /b`,
		"/a/%252e%252e%252fb": "/a/%252e%252e%252fb /a/%2e%2e%2fb /a/../b /b",
		"/%2561dmin":          "/%2561dmin /%61dmin /admin",
		"/a%20b":              "/a%20b /a b",
	} {
		all, ok := message.Readings(path)
		wanted := strings.Split(want, " /")
		for i := 1; i < len(wanted); i++ {
			wanted[i] = "/" + wanted[i]
		}
		if path == "/a%20b" {
			wanted = []string{"/a%20b", "/a b"}
		}
		slices.Sort(all)
		slices.Sort(wanted)
		if !ok || !slices.Equal(all, wanted) {
			t.Errorf("%s is read as %q, %t; want %q", path, all, ok, wanted)
		}
	}
	long := "/" + strings.Repeat("a", 4<<10-1)
	for path, want := range map[string]bool{
		long: true, long + "a": false, "/a;%252f%5c..;%3bb//../c": false,
	} {
		if all, ok := message.Readings(path); ok != want {
			t.Errorf("a path of %d bytes has %d readings, %t", len(path), len(all), ok)
		}
	}
}

// FuzzReadings checks that the readings contain the path as it was sent and the path that is used for routing, that
// each reading begins with a slash, and that a path is ambiguous if it has more readings than its simple unescaping.
func FuzzReadings(f *testing.F) {
	for _, path := range []string{"/", "/a/../b", "/a%2f..;x/%252e//b%5c", "/%", "/;/..;/"} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		decoded, err := url.PathUnescape(path)
		if err != nil || !strings.HasPrefix(path, "/") {
			t.Skip()
		}
		all, ok := message.Readings(path)
		if !ok {
			t.Skip()
		}
		if all[0] != path || !slices.Contains(all, message.CleanPath(decoded)) {
			t.Errorf("%q is read as %q", path, all)
		}
		for _, reading := range all {
			if !strings.HasPrefix(reading, "/") {
				t.Errorf("%q is read as %q", path, reading)
			}
		}
		if !message.Ambiguous(path) && message.CleanPath(decoded) != decoded {
			t.Errorf("%q is cleaned and not ambiguous", path)
		}
	})
}

func TestHasDotSegment(t *testing.T) {
	for path, want := range map[string]bool{
		"/": false, "/a": false, "/...": false, "/.a": false, "/a..": false, "/a;..": false, "/a%": false,
		"/a/b": false, "": false, "a": false, "/a.": false, "/;.": false, "/..a": false, "/a%2e": false, "/%2ea": false,
		".": true, "..": true, "/%2e": true, "/a/..": true, `\.`: true, "/a/...../..": true,
		"/.": true, "/a/../b": true, "/a/..;/b": true, "/a/.;x": true, `/a\..\b`: true, `/..\a`: true,
		"/a/%2e%2e/b": true,
		"/a/..%2fb":   true, "/a/..%5cb": true, "/a/..%3b/b": true,
	} {
		if got := message.HasDotSegment(path); got != want {
			t.Errorf("%s: %t, want %t", path, got, want)
		}
	}
}

// BenchmarkReadings reads ambiguous paths of the maximum length.
func BenchmarkReadings(b *testing.B) {
	for name, path := range map[string]string{
		"an object":  "/bucket/library%2Fnginx/key",
		"parameters": "/" + strings.Repeat("a;/", 4095/3),
		"everything": "/" + strings.Repeat("..;%252f%5c/", 4095/12),
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				_, _ = message.Readings(path)
			}
		})
	}
}

func BenchmarkAmbiguous(b *testing.B) {
	for b.Loop() {
		message.Ambiguous("/api/v1/namespaces/default/pods/web-0")
	}
}
