package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

func TestLimitsFlags(t *testing.T) {
	for name, c := range map[string]struct {
		arguments string
		duration  time.Duration
		share     int
	}{
		"default":            {"", time.Minute, 1},
		"quick":              {"-quick", quickLimits, quickShare},
		"quick and duration": {"-quick -duration 3s", 3 * time.Second, quickShare},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := parseLimits(strings.Fields(c.arguments))
			if err != nil || l.duration != c.duration || l.share != c.share {
				t.Errorf("limits are %+v: %v", l, err)
			}
		})
	}
	if _, err := parseLimits([]string{"-duration", "1ms"}); err == nil {
		t.Error("a duration of 1 ms is no error")
	}
}

func TestMissedBarsAreAnError(t *testing.T) {
	for name, c := range map[string]struct {
		met  []string
		want string
	}{
		"all met":      {[]string{"yes", "yes"}, ""},
		"one missed":   {[]string{"yes", "no"}, "1 of 2"},
		"not measured": {[]string{"", "yes"}, "1 of 2"},
	} {
		t.Run(name, func(t *testing.T) {
			var bars []bar
			for _, met := range c.met {
				bars = append(bars, bar{Met: met})
			}
			switch err := missed(bars); {
			case c.want == "" && err != nil, c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("the error is %v", err)
			}
		})
	}
}

func TestLimitBars(t *testing.T) {
	quiet := &tally{figures: figures{p99: time.Millisecond}, latencies: []time.Duration{1}}
	beside := func(p99 time.Duration, failed int) *tally {
		return &tally{figures: figures{p99: p99}, latencies: []time.Duration{1}, failed: failed}
	}
	late := &asker{tally: tally{latencies: []time.Duration{1}, failed: 1, first: errors.New("late")}}
	for name, c := range map[string]struct {
		bar  bar
		want string
	}{
		"as fast":              {slowdownBar("", quiet, beside(time.Millisecond, 0)), "yes"},
		"twice as slow":        {slowdownBar("", quiet, beside(2*time.Millisecond, 0)), "no"},
		"as fast, one failed":  {slowdownBar("", quiet, beside(time.Millisecond, 1)), "no"},
		"no answer":            {slowdownBar("", quiet, &tally{}), "no"},
		"little memory":        {memoryBar("", memoryLimit<<20), "yes"},
		"much memory":          {memoryBar("", memoryLimit<<20*3/2), "no"},
		"memory not known":     {memoryBar("", 0), "no"},
		"all answered":         {(&asker{tally: tally{latencies: []time.Duration{1}}}).bar(""), "yes"},
		"one answer is late":   {late.bar(""), "no"},
		"no request was asked": {(&asker{}).bar(""), "no"},
	} {
		if c.bar.Met != c.want {
			t.Errorf("%s: %+v, want %s", name, c.bar, c.want)
		}
	}
}

func TestOutcomesAreListedByCount(t *testing.T) {
	var o outcomes
	if got := o.String(); got != "nothing" {
		t.Errorf("no outcome is %q", got)
	}
	o.add("open", 2000)
	o.add("answered 503", 3000)
	o.add("reset", 0)
	o.add("gone", 1)
	o.add("gone", -1)
	if got, want := o.String(), "3,000 answered 503, 2,000 open"; got != want {
		t.Errorf("outcomes are %q, want %q", got, want)
	}
}

// TestOpenRequests checks the outcomes of three requests: the server responds to the first, resets the second and
// leaves the third open.
func TestOpenRequests(t *testing.T) {
	client, server := net.Pipe()
	defer client.Close()
	var o outcomes
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() {
		err := answerThree(server)
		cancel()
		failed <- errors.Join(err, server.Close())
	}()
	newTwoConn(client, &o).run(ctx, openRequests{streams: 3, fields: largeFields, fieldSize: largeField,
		length: 20, sent: 10})
	if err := <-failed; err != nil {
		t.Fatal(err)
	}
	if got, want := o.String(), "1 answered 503, 1 open at the end, 1 reset with REFUSED_STREAM"; got != want {
		t.Errorf("outcomes are %q, want %q", got, want)
	}
}

// answerThree reads three requests with bodies of 10 bytes. It responds to the first one, resets the second and leaves
// the third open.
func answerThree(conn net.Conn) error {
	if _, err := io.ReadFull(conn, make([]byte, len(http2.ClientPreface))); err != nil {
		return err
	}
	framer := http2.NewFramer(conn, conn)
	framer.ReadMetaHeaders = hpack.NewDecoder(4<<10, nil)
	var block bytes.Buffer
	if err := hpack.NewEncoder(&block).WriteField(hpack.HeaderField{Name: ":status", Value: "503"}); err != nil {
		return err
	}
	for bodies := 0; bodies < 3; {
		frame, err := framer.ReadFrame()
		if err != nil {
			return err
		}
		switch f := frame.(type) {
		case *http2.MetaHeadersFrame:
			size := 0
			for _, field := range f.RegularFields() {
				size += len(field.Value)
			}
			if size < largeFields*largeField {
				return errors.New("the head is too small")
			}
		case *http2.DataFrame:
			if bodies++; f.StreamEnded() || len(f.Data()) != 10 {
				return errors.New("a body is not half of what its length declares")
			}
		}
	}
	return errors.Join(framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(),
		EndHeaders: true}),
		framer.WriteRSTStream(3, http2.ErrCodeRefusedStream))
}
