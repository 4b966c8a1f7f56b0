package front

import (
	"log" //nolint:depguard // net/http requires this type.
	"strings"
)

// errorLog returns the logger for errors of net/http. As in Caddy, panics of handlers are logged as errors, and all
// other messages at debug level.
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
