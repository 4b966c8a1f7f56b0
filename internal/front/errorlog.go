package front

import (
	"log" //nolint:depguard // net/http wants this type.
	"strings"
)

// errorLog is for net/http. As in Caddy, a panic of a handler is an error, and everything else for those who debug.
func errorLog() *log.Logger { return log.New(errorWriter{}, "", 0) }

type errorWriter struct{}

func (errorWriter) Write(p []byte) (int, error) {
	message := strings.TrimSuffix(string(p), "\n")
	if strings.HasPrefix(message, "http: panic serving") {
		stdlib().Error(message)
	} else {
		stdlib().Debug(message)
	}
	return len(p), nil
}
