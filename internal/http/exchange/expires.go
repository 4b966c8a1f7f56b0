package exchange

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
)

// expires is a compiled ir.Expires.
type expires struct {
	ir.Expires
	// value is the compiled Template. It is nil if Template is empty.
	value *nginx.Template
}

// newExpires compiles the directive expires. It returns nil if of is nil.
func (d *Directives) newExpires(of *ir.Expires) (e *expires, err error) {
	if of == nil {
		return nil, nil
	}
	e = &expires{Expires: *of}
	switch of.Mode {
	case ir.ExpiresIn, ir.ExpiresDaily, ir.ExpiresEpoch, ir.ExpiresMax, ir.ExpiresOff:
	default:
		return nil, fmt.Errorf("expires: unknown mode %q", of.Mode)
	}
	if of.Template != "" {
		e.value, err = d.template(of.Template)
	}
	return e, err
}

const day = 24 * time.Hour

// ParseExpires parses the argument of nginx's directive expires. modified is true if the word "modified" precedes it.
func ParseExpires(text string, modified bool) (ir.Expires, error) {
	switch mode := ir.ExpiresMode(text); {
	case mode != ir.ExpiresEpoch && mode != ir.ExpiresMax && mode != ir.ExpiresOff:
		return parseExpiresTime(text, modified)
	case modified:
		return ir.Expires{}, errors.New("write a time behind modified, such as 1h")
	default:
		return ir.Expires{Mode: mode}, nil
	}
}

func parseExpiresTime(text string, modified bool) (ir.Expires, error) {
	to := ir.Expires{Modified: modified}
	daily, negative := strings.HasPrefix(text, "@"), strings.HasPrefix(text, "-")
	if daily || negative || strings.HasPrefix(text, "+") {
		text = text[1:]
	}
	d, err := nginx.LongTime(text)
	switch {
	case err != nil:
		return to, err
	case strings.Contains(text, "ms"):
		return to, errors.New("write a time in seconds or in a longer unit")
	case daily && modified:
		return to, errors.New("a time of day cannot follow modified")
	case daily && d > day:
		return to, fmt.Errorf("%s is not a time of day: write at most @24h", nginx.Quote("@"+text))
	case daily:
		to.Mode = ir.ExpiresDaily
	}
	if to.Seconds = int64(d / time.Second); negative {
		to.Seconds = -to.Seconds
	}
	return to, nil
}

// apply sets the fields Expires and Cache-Control, as nginx's directive expires does.
func (e *expires) apply(fields *message.Fields, values *expansion) {
	of := e.Expires
	if e.value != nil {
		var err error
		if of, err = ParseExpires(values.value(e.value), of.Modified); err != nil {
			return
		}
	}
	at, control := "", "no-cache"
	switch of.Mode {
	case ir.ExpiresOff:
		return
	case ir.ExpiresEpoch:
		at = "Thu, 01 Jan 1970 00:00:01 GMT"
	case ir.ExpiresMax:
		at, control = "Thu, 31 Dec 2037 23:55:55 GMT", "max-age=315360000"
	default:
		now := time.Now()
		moment := momentOf(&of, now, fields)
		if age := moment.Unix() - now.Unix(); of.Seconds >= 0 && age >= 0 {
			control = "max-age=" + strconv.FormatInt(age, 10)
		}
		at = moment.UTC().Format(http.TimeFormat)
	}
	fields.Set(message.NewField("Expires", at))
	fields.Set(message.NewField("Cache-Control", control))
}

const lastModified = "Last-Modified"

// momentOf returns the time at which a response that is sent now expires.
func momentOf(of *ir.Expires, now time.Time, fields *message.Fields) time.Time {
	switch {
	case of.Mode == ir.ExpiresDaily:
		moment := timeOfDay(now, 0, of.Seconds)
		if moment.Unix() <= now.Unix() {
			moment = timeOfDay(now, 1, of.Seconds)
		}
		return moment
	case of.Modified && of.Seconds != 0:
		value, _ := fields.Joined(lastModified)
		if modified, err := http.ParseTime(value); err == nil {
			now = modified
		}
	}
	return now.Add(time.Duration(of.Seconds) * time.Second)
}

// timeOfDay returns the time at the given number of seconds after midnight, the given number of days after now.
func timeOfDay(now time.Time, days int, seconds int64) time.Time {
	return time.Date(now.Year(), now.Month(), now.Day()+days, 0, 0, int(seconds), 0, now.Location())
}
