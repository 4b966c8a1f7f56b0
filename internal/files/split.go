package files

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"path"
)

// text is one document of a file.
type text struct {
	// line is the number of its first line, from 1.
	line int
	data []byte
}

// begin is the number of the line on which the object begins, behind blank lines and comments.
func (t text) begin() int {
	begin := t.line
	for line := range bytes.Lines(t.data) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' {
			return begin
		}
		begin++
	}
	return t.line
}

// split cuts a file into its documents. The error is of what follows them.
func split(name string, data []byte) ([]text, error) {
	data = bytes.TrimPrefix(data, byteOrderMark)
	if path.Ext(name) == ".json" {
		return splitJSON(data)
	}
	return splitYAML(data), nil
}

var byteOrderMark = []byte("\xef\xbb\xbf")

// splitYAML cuts a file at the lines that begin a document. It looks at no more than that, so that one document that is
// not YAML spoils no other.
func splitYAML(data []byte) []text {
	var list []text
	current, number := text{line: 1}, 0
	for line := range bytes.Lines(data) {
		number++
		rest, ok := marker(line)
		if !ok {
			current.data = append(current.data, line...)
			continue
		}
		if !onlyDirectives(current.data) {
			list = append(list, current)
		}
		current = text{line: number, data: append([]byte(nil), rest...)}
	}
	return append(list, current)
}

// marker returns what follows the dashes on a line that begins a document. The line stays a line, so that the numbers
// of those that follow are right.
func marker(line []byte) ([]byte, bool) {
	rest, ok := bytes.CutPrefix(line, []byte("---"))
	if !ok || (len(rest) > 0 && !bytes.ContainsAny(rest[:1], " \t\r\n")) {
		return nil, false
	}
	return rest, true
}

// onlyDirectives says that lines such as "%YAML 1.2" stand before the first document, and nothing else.
func onlyDirectives(data []byte) bool {
	for line := range bytes.Lines(data) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '%' && line[0] != '#' {
			return false
		}
	}
	return true
}

// splitJSON cuts a file that holds one JSON value behind the other. The error is of the text that follows the list.
func splitJSON(data []byte) ([]text, error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	var list []text
	for {
		before := decoder.InputOffset()
		var raw json.RawMessage
		switch err := decoder.Decode(&raw); {
		case errors.Is(err, io.EOF):
			return list, nil
		case err != nil:
			return list, &lineError{line: lineAt(data, errorOffset(err, decoder)), err: err}
		}
		space := len(data[before:]) - len(bytes.TrimLeft(data[before:], " \t\r\n"))
		list = append(list, text{line: lineAt(data, before+int64(space)), data: raw})
	}
}

func errorOffset(err error, d *json.Decoder) int64 {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return syntax.Offset
	}
	return d.InputOffset()
}

func lineAt(data []byte, offset int64) int {
	return 1 + bytes.Count(data[:min(max(0, offset), int64(len(data)))], []byte("\n"))
}

// lineError is an error at a line of a file.
type lineError struct {
	line int
	err  error
}

func (e *lineError) Error() string { return e.err.Error() }

func (e *lineError) Unwrap() error { return e.err }
