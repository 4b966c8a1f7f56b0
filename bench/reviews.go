package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
)

// reviewsCommand is the first argument that only sends large reviews, again and again, until the process gets SIGTERM.
// They have a process of their own with the lowest priority, because the API server usually runs on another machine.
const reviewsCommand = "reviews"

// reviewAnswers counts the responses to large reviews: decisions, the status 429, and other responses and errors.
type reviewAnswers struct{ Decided, Busy, Other counter }

// counter is an atomic.Int64 that is a number in JSON.
type counter struct{ atomic.Int64 }

// MarshalJSON returns the number.
func (c *counter) MarshalJSON() ([]byte, error) { return json.Marshal(c.Load()) }

// UnmarshalJSON adds a number.
func (c *counter) UnmarshalJSON(text []byte) error {
	var number int64
	err := json.Unmarshal(text, &number)
	c.Add(number)
	return err
}

// runReviews sends bursts of large reviews until ctx ends, and prints the counts of the responses as JSON.
func runReviews(ctx context.Context, arguments []string, out io.Writer) error {
	flags := flag.NewFlagSet("bench reviews", flag.ContinueOnError)
	url := flags.String("url", "", "the URL of the webhook")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if *url == "" {
		return errors.New("reviews needs -url")
	}
	r := &reviewing{url: *url, client: reviewClient()}
	body, answers := largeBody(), new(reviewAnswers)
	for ctx.Err() == nil {
		r.burst(ctx, body, answers)
	}
	return json.NewEncoder(out).Encode(answers)
}

// burst sends large reviews at once, and waits for the responses.
func (r *reviewing) burst(ctx context.Context, body []byte, answers *reviewAnswers) {
	var sending sync.WaitGroup
	for range largeReviews {
		sending.Go(func() {
			switch status, _, err := r.review(ctx, body); {
			case err == nil && status == http.StatusOK:
				answers.Decided.Add(1)
			case err == nil && status == http.StatusTooManyRequests:
				answers.Busy.Add(1)
			case ctx.Err() == nil:
				answers.Other.Add(1)
			}
		})
	}
	sending.Wait()
}

// sendReviews runs runReviews in another process until ctx ends, and adds its counts to answers.
func sendReviews(ctx context.Context, url string, answers *reviewAnswers) error {
	// The process ends together with the thread that started it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	command := exec.CommandContext(ctx, "nice", "-n", "19", self, reviewsCommand, "-url", url)
	command.SysProcAttr = endWithParent(syscall.SIGKILL)
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = endTime
	out, err := command.Output()
	// The context ends before the process does, so its error is expected.
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("sending reviews: %w", err)
	}
	return json.Unmarshal(out, answers)
}
