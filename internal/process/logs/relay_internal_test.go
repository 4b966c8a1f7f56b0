package logs

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// sink is the log writer of a configuration. It must not receive anything after it is closed.
type sink struct {
	mu       sync.Mutex
	messages []string
	closed   bool
	late     int
}

func (s *sink) Write(line []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		s.late++
	}
	s.messages = append(s.messages, strings.TrimSpace(string(line)))
	return len(line), nil
}

func (s *sink) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
}

// add adds a configuration with one log, whose lines contain only the messages.
func add(ctx context.Context, r *relay) (*Config, *sink) {
	s := &sink{}
	encoder := zapcore.NewConsoleEncoder(zapcore.EncoderConfig{MessageKey: "m"})
	log := zap.New(zapcore.NewCore(encoder, zapcore.AddSync(s), zapcore.DebugLevel))
	return r.add(caddy.Context{Context: ctx}, log), s
}

// TestReloadsLoseNothing checks that each message is written exactly once during reloads, and never to a closed writer.
func TestReloadsLoseNothing(t *testing.T) {
	r := &relay{}
	const loggers, reloads = 4, 300
	var written atomic.Int64
	var logging sync.WaitGroup
	current, out := add(t.Context(), r)
	current.Start()
	sinks := []*sink{out}
	done := make(chan struct{})
	for range loggers {
		l := r.logger("k8singress").With(zap.Skip())
		logging.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					l.Info("m")
					written.Add(1)
				}
			}
		})
	}
	for range reloads {
		next, s := add(t.Context(), r)
		next.Start()
		current.Stop()
		out.close()
		current.Close()
		current, out = next, s
		sinks = append(sinks, s)
	}
	close(done)
	logging.Wait()
	got := 0
	for _, s := range sinks {
		got += len(s.messages)
		if s.late > 0 {
			t.Errorf("%d messages were written after the writer was closed", s.late)
		}
	}
	if int64(got) != written.Load() {
		t.Errorf("%d messages were written, of %d", got, written.Load())
	}
}

// TestCanceled checks that the logs of a configuration get no messages once Caddy is about to close them, and that the
// loggers do not keep the configuration in memory.
func TestCanceled(t *testing.T) {
	r := &relay{}
	ctx, cancel := context.WithCancel(t.Context())
	config, out := add(ctx, r)
	config.Start()
	l := r.logger("k8singress")
	checked := l.Check(zap.InfoLevel, "checked before, written after")
	l.Info("before")
	config.Stop()
	l.Info("stopping")
	cancel()
	out.close()
	checked.Write()
	l.Info("after")
	if got := strings.Join(out.messages, ","); got != "before,stopping" || out.late > 0 {
		t.Errorf("the log has %q, %d of them late", got, out.late)
	}
	if config.ctx != nil || r.current.Load() != nil {
		t.Error("the configuration is kept")
	}
}
