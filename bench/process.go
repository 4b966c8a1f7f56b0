package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// patience is the time limit for a process to become ready, and for the programs that bench runs.
const patience = 2 * time.Minute

// endTime is the time limit for a process to end after the signal.
const endTime = 10 * time.Second

// program is the command of a process.
type program struct {
	path      string
	arguments []string
	// end is the signal that ends the process together with its child processes.
	end syscall.Signal
}

// process is a running program.
type process struct {
	program program
	command *exec.Cmd
	log     string
	ended   chan struct{}
}

// startProcess runs a program. Its log and its working files are in folder.
func startProcess(folder string, of program) (*process, error) {
	log, err := os.Create(filepath.Join(folder, "log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	command := exec.Command(of.path, of.arguments...)
	command.Stdout, command.Stderr = log, log
	command.Env = append(os.Environ(), "HOME="+folder, "XDG_DATA_HOME="+folder, "XDG_CONFIG_HOME="+folder)
	command.SysProcAttr = endWithParent(of.end)
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", of.path, err)
	}
	p := &process{program: of, command: command, log: log.Name(), ended: make(chan struct{})}
	go func() {
		_ = command.Wait() // await reports an early end with the log.
		close(p.ended)
	}()
	return p, nil
}

func (p *process) stop() {
	_ = p.command.Process.Signal(p.program.end) // An error means that the process has already ended.
	select {
	case <-p.ended:
	case <-time.After(endTime):
		_ = p.command.Process.Kill()
		<-p.ended
	}
}

// pause and resume stop and continue a process, so that it uses no processor time while another one is measured.
func (p *process) pause() error  { return p.command.Process.Signal(syscall.SIGSTOP) }
func (p *process) resume() error { return p.command.Process.Signal(syscall.SIGCONT) }

// await calls yes until it returns true.
func (p *process) await(ctx context.Context, yes func(context.Context) bool) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		if yes(ctx) {
			return nil
		}
		select {
		case <-tick.C:
		case <-p.ended:
			return fmt.Errorf("it ended: %s", p.lastWords())
		case <-ctx.Done():
			return fmt.Errorf("%w; its log ends with: %s", ctx.Err(), p.lastWords())
		}
	}
}

// lastWords returns the end of the process's log.
func (p *process) lastWords() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	const enough = 2000
	return string(text[max(0, len(text)-enough):])
}

// meter waits until begin. It returns a function that returns the processor time used since then.
func (p *process) meter(ctx context.Context, begin time.Time) func() (time.Duration, error) {
	wait(ctx, begin)
	before, err := p.processorTime()
	return func() (time.Duration, error) {
		if err != nil {
			return 0, err
		}
		after, err := p.processorTime()
		return after - before, err
	}
}

// memory returns the resident memory in bytes.
func (p *process) memory() (int64, error) {
	output, err := exec.Command("ps", "-o", "rss=", "-p", strconv.Itoa(p.command.Process.Pid)).Output()
	if err != nil {
		return 0, fmt.Errorf("asking ps for the memory: %w", err)
	}
	kilobytes, err := strconv.ParseInt(strings.TrimSpace(string(output)), 10, 64)
	return kilobytes << 10, err
}

// get sends a GET request with the given Host header.
func get(ctx context.Context, url, host string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	request.Host = host
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode == http.StatusOK {
		return response, nil
	}
	return nil, errors.Join(fmt.Errorf("%s answers %s", url, response.Status), response.Body.Close())
}
