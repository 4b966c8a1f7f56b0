package settings

import (
	"encoding/json"
	"fmt"
	"time"
)

// Duration is a time in JSON as Caddy has it: "10s", or a number of nanoseconds.
type Duration time.Duration

// UnmarshalJSON reads either form.
func (d *Duration) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) != nil {
		return json.Unmarshal(data, (*int64)(d))
	}
	parsed, err := time.ParseDuration(text)
	if err != nil {
		return fmt.Errorf("%q is no duration, such as 10s or 4m: %w", text, err)
	}
	*d = Duration(parsed)
	return nil
}
