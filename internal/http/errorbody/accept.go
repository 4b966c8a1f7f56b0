package errorbody

import (
	"strings"

	"github.com/k8singress/k8singress/internal/http/message"
)

// offers are the media types of the formats, as a type and a subtype.
var offers = [len(formats)]struct{ major, minor string }{
	text: {"text", "plain"}, html: {"text", "html"}, json: {"application", "json"},
	problem: {"application", "problem+json"},
}

// jsonSuffix is the end of media types whose syntax is JSON (RFC 6839). A client that accepts such a type can read a
// body in the format problem.
const jsonSuffix = "+json"

// preference says how much a client prefers a format. A more specific media range overrides less specific ranges, and
// among equal ranges the first counts.
type preference struct {
	// specificity is 4 for the media type itself, 3 for another type with the same suffix, 2 for a range of subtypes, 1
	// for */*, and 0 if the client does not accept the format.
	specificity int
	// weight is the quality value in thousandths.
	weight int
	// at is the position of the range in the header.
	at int
}

// formatFor returns the index of the format to use for a client with these header fields: the format with the highest
// quality value in Accept. If several have this value, the most specific media range decides, then the order of the
// ranges, and then the order of the formats. A client that accepts no format gets plain text (RFC 9110, section
// 12.5.1).
func formatFor(fields message.Fields) int {
	var preferences [len(formats)]preference
	at := 0
	for i := range fields {
		if fields[i].Kind != message.Accept {
			continue
		}
		for rest := fields[i].Value; rest != ""; {
			var element string
			element, rest = cut(rest, ',')
			at++
			read(element, at, &preferences)
		}
	}
	best := text
	for i := range preferences {
		if preferences[i].above(&preferences[best]) {
			best = i
		}
	}
	return best
}

func (p *preference) above(other *preference) bool {
	switch {
	case p.specificity == 0 || p.weight == 0:
		return false
	case p.weight != other.weight:
		return p.weight > other.weight
	case p.specificity != other.specificity:
		return p.specificity > other.specificity
	}
	return p.at < other.at
}

// read applies one element of Accept, which is the at-th, to the preferences. It ignores invalid elements, and
// parameters other than the quality value.
func read(element string, at int, preferences *[len(formats)]preference) {
	media, parameters := cut(element, ';')
	major, minor, ok := strings.Cut(strings.Trim(media, " \t"), "/")
	if !ok {
		return
	}
	weight, ok := weightOf(parameters)
	if !ok {
		return
	}
	for i := range preferences {
		if specificity := specificityOf(major, minor, i); specificity > preferences[i].specificity {
			preferences[i] = preference{specificity, weight, at}
		}
	}
}

// specificityOf returns the specificity of a media range for the format with the given index.
func specificityOf(major, minor string, format int) int {
	offer := &offers[format]
	switch {
	case major == "*" && minor == "*":
		return 1
	case strings.EqualFold(major, offer.major) && strings.EqualFold(minor, offer.minor):
		return 4
	case format == problem && major != "*" && hasJSONSuffix(minor):
		return 3
	case strings.EqualFold(major, offer.major) && minor == "*":
		return 2
	}
	return 0
}

func hasJSONSuffix(minor string) bool {
	at := len(minor) - len(jsonSuffix)
	return at > 0 && strings.EqualFold(minor[at:], jsonSuffix)
}

const maxWeight = 1000

// weightOf returns the quality value in the parameters of a media range in thousandths. It is 1000 without the
// parameter q. ok is false if the value is not valid.
func weightOf(parameters string) (weight int, ok bool) {
	for parameters != "" {
		var parameter string
		parameter, parameters = cut(parameters, ';')
		name, value, _ := strings.Cut(parameter, "=")
		if strings.EqualFold(strings.Trim(name, " \t"), "q") {
			return parseWeight(strings.Trim(value, " \t"))
		}
	}
	return maxWeight, true
}

// parseWeight parses a qvalue of RFC 9110, section 12.4.2: a number between 0 and 1 with up to three decimals.
func parseWeight(s string) (weight int, ok bool) {
	whole, decimals, _ := strings.Cut(s, ".")
	if whole != "0" && whole != "1" || len(decimals) > 3 {
		return 0, false
	}
	unit := maxWeight
	weight = int(whole[0]-'0') * unit
	for i := range len(decimals) {
		if decimals[i] < '0' || decimals[i] > '9' {
			return 0, false
		}
		unit /= 10
		weight += int(decimals[i]-'0') * unit
	}
	return weight, weight <= maxWeight
}

// cut splits a list at the first separator outside of quoted strings. Without a separator, part is the whole list.
func cut(list string, separator byte) (part, rest string) {
	quoted := false
	for i := 0; i < len(list); i++ {
		switch c := list[i]; {
		case c == '"':
			quoted = !quoted
		case quoted && c == '\\':
			i++
		case !quoted && c == separator:
			return list[:i], list[i+1:]
		}
	}
	return list, ""
}
