package files

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"path"
)

// text is one YAML or JSON document of a file.
type text struct {
	// line is the number of the document's first line in the file, starting from 1.
	line int
	data []byte
}

// begin returns the line number of the document's first line that is neither blank nor a comment.
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

// split splits a file into its YAML or JSON documents. If it returns an error, the returned documents precede the error
// in the file.
func split(name string, data []byte) ([]text, error) {
	data = bytes.TrimPrefix(data, byteOrderMark)
	if path.Ext(name) == ".json" {
		return splitJSON(data)
	}
	return splitYAML(data), nil
}

var byteOrderMark = []byte("\xef\xbb\xbf")

// splitYAML splits a file at the lines that start with "---". It does not parse the YAML, so that an invalid document
// does not affect the other documents.
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

// marker reports whether a line starts a YAML document, and returns the rest of the line after "---". The rest becomes
// the first line of the document, so that line numbers stay correct.
func marker(line []byte) ([]byte, bool) {
	rest, ok := bytes.CutPrefix(line, []byte("---"))
	if !ok || (len(rest) > 0 && !bytes.ContainsAny(rest[:1], " \t\r\n")) {
		return nil, false
	}
	return rest, true
}

// onlyDirectives reports whether the text before the first document contains only directives such as "%YAML 1.2",
// comments and blank lines.
func onlyDirectives(data []byte) bool {
	for line := range bytes.Lines(data) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '%' && line[0] != '#' {
			return false
		}
	}
	return true
}

// splitJSON splits a file into its JSON values. If it returns an error, the returned values precede the error in the
// file.
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

// lineError is an error with its line number in the file.
type lineError struct {
	line int
	err  error
}

func (e *lineError) Error() string { return e.err.Error() }

func (e *lineError) Unwrap() error { return e.err }
