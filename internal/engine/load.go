package engine

import (
	"context"
	"errors"

	"github.com/k8singress/k8singress/internal/document"
)

// ErrHasSource is why Load refuses a document.
var ErrHasSource = errors.New("this process follows a cluster or a folder of manifests, and takes no documents; " +
	"set \"source none\" for one that does")

// Load serves a document in place of what was served before. It waits until the document is in effect.
func (e *Engine) Load(ctx context.Context, d *document.Live) error {
	if e.HasSource() {
		return ErrHasSource
	}
	l := load{document: d, served: make(chan struct{})}
	select {
	case e.loads <- l:
		<-l.served
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-e.done:
		return errors.New("the engine has ended")
	}
}

// serveDocument applies a document that came from outside.
func (l *loop) serveDocument(d *document.Live) {
	l.apply(document.Diff(l.document(), d), nil)
	l.document = func() *document.Live { return d }
	l.publish()
}
