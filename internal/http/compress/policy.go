// Package compress compresses responses as nginx does, if compression is enabled and the client accepts it.
package compress

import (
	"slices"
	"strconv"
	"strings"

	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/pattern"
)

// Policy is the compression configuration. It is immutable.
type Policy struct {
	// codings are the enabled compression algorithms in order of preference.
	codings []*coding
	// except reports whether responses to a client with the given User-Agent must not be compressed with gzip. Nil
	// means that there are no such clients.
	except func(agent string) bool
}

// New returns the policy for the given settings, or nil if compression is disabled.
func New(of *ir.Compression) *Policy {
	p := &Policy{}
	if of.Brotli.On {
		p.codings = append(p.codings, newBrotli(&of.Brotli))
	}
	if of.Gzip.On {
		p.codings = append(p.codings, newGzip(&of.Gzip))
		p.except = exceptOf(of.GzipDisable)
	}
	if p.codings == nil {
		return nil
	}
	return p
}

// exceptOf returns the function for Policy.except. expression is nginx's keyword msie6, or a regular expression that
// was validated when the ConfigMap was read.
func exceptOf(expression string) func(agent string) bool {
	switch expression {
	case "":
		return nil
	case "msie6":
		return isMSIE6
	}
	p, err := pattern.CompileFold(expression)
	if err != nil {
		return nil
	}
	return p.Find
}

// isMSIE6 reports whether a User-Agent belongs to an Internet Explorer version that nginx's keyword msie6 matches.
// These are the versions 4, 5 and 6. The version 6 on Windows XP Service Pack 2, whose User-Agent contains "SV1", is
// not included.
func isMSIE6(agent string) bool {
	_, version, _ := strings.Cut(agent, "MSIE ")
	if len(version) < len("6.0") || version[1] != '.' {
		return false
	}
	switch version[0] {
	case '4', '5':
		return true
	case '6':
		return !strings.Contains(version, "SV1")
	}
	return false
}

// accepted returns the enabled codings that the client accepts, at the same indexes as in p.codings. The elements for
// the other codings are nil.
func (p *Policy) accepted(r *message.Request) (accepted [2]*coding) {
	fields, _ := r.Fields.Joined("Accept-Encoding")
	if fields == "" || r.Major == 1 && r.Minor == 0 {
		return accepted
	}
	for i, c := range p.codings {
		excepted := c.name == gzipName && p.except != nil && p.except(r.Fields.Get(message.UserAgent))
		if !excepted && accepts(fields, c.name) {
			accepted[i] = c
		}
	}
	return accepted
}

// accepts reports whether list, the value of an Accept-Encoding header, contains the coding name with a weight above 0.
func accepts(list, name string) bool {
	for entry := range strings.SplitSeq(list, ",") {
		coding, parameters, _ := strings.Cut(entry, ";")
		if !strings.EqualFold(strings.Trim(coding, " \t"), name) {
			continue
		}
		for parameter := range strings.SplitSeq(parameters, ";") {
			key, value, _ := strings.Cut(parameter, "=")
			if !strings.EqualFold(strings.Trim(key, " \t"), "q") {
				continue
			}
			if weight, err := strconv.ParseFloat(strings.Trim(value, " \t"), 64); err != nil ||
				weight <= 0 || weight > 1 {
				return false
			}
		}
		return true
	}
	return false
}

// compressible reports whether a response may be compressed. As in nginx, only responses with the status 200, 403 or
// 404 are compressed. Event streams are not compressed, because each event must be delivered immediately. gRPC
// responses are not compressed, because gRPC has its own compression. The directive no-transform (RFC 9111, section
// 5.2.2.6) forbids compression.
func compressible(a *message.Response) bool {
	if a.Status != 200 && a.Status != 403 && a.Status != 404 || a.Length == 0 {
		return false
	}
	if encoding, _ := a.Fields.Joined("Content-Encoding"); encoding != "" {
		return false
	}
	if control, _ := a.Fields.Joined("Cache-Control"); slices.ContainsFunc(strings.Split(control, ","), isNoTransform) {
		return false
	}
	media := a.MediaType()
	return media != "" && media != "text/event-stream" && !strings.HasPrefix(media, "application/grpc")
}

func isNoTransform(directive string) bool {
	return strings.EqualFold(strings.Trim(directive, " \t"), "no-transform")
}
