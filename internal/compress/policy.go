// Package compress has answers go out compressed where the options ask for it and the client understands it, as nginx does.
package compress

import (
	"slices"
	"strconv"
	"strings"

	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/message"
	"github.com/k8singress/k8singress/internal/pattern"
)

// Policy is what the options say. It is immutable.
type Policy struct {
	// codings are in the order in which they are preferred.
	codings []*coding
	// except says which clients get no gzip, by their User-Agent; nil is none.
	except func(agent string) bool
}

// New returns nil where nothing is compressed.
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

// exceptOf returns which clients get no gzip by an expression, which was compiled when the key was read, or by nginx's word for one.
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

// isMSIE6 tells the Internet Explorers that nginx calls msie6: 4 and 5, and 6 without the second service pack of Windows XP.
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

// accepted returns the codings that a client understands, the best one first.
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

// accepts says whether Accept-Encoding names a coding, with a weight that is not 0.
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
			if weight, err := strconv.ParseFloat(strings.Trim(value, " \t"), 64); err != nil || weight <= 0 || weight > 1 {
				return false
			}
		}
		return true
	}
	return false
}

// compressible says whether an answer may be compressed at all: nginx compresses those with these statuses. A stream of events has to come
// through event by event, a call of gRPC compresses by itself, and no-transform is RFC 9111 5.2.2.6.
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
	media := mediaType(a)
	return media != "" && media != "text/event-stream" && !strings.HasPrefix(media, "application/grpc")
}

func isNoTransform(directive string) bool {
	return strings.EqualFold(strings.Trim(directive, " \t"), "no-transform")
}

// mediaType is without parameters, and in lower case.
func mediaType(a *message.Response) string {
	media, _, _ := strings.Cut(a.Fields.Get(message.ContentType), ";")
	return strings.ToLower(strings.Trim(media, " \t"))
}
