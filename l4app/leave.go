package l4app

import "context"

// Outlast says that the process ends, and that Close, which comes when Caddy has stopped its apps, is to leave everything as
// it is for Leave. It may be called on any goroutine.
func (p *Ports) Outlast() { p.outlasts.Store(true) }

// Refuse closes all ports, and lets none be opened any more; connections go on. It may be called on any goroutine, and more
// than once.
func (p *Ports) Refuse() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left = true
	for name := range p.open {
		p.drop(name)
	}
}

// Leave does what Refuse does, and waits until all connections have ended; when ctx is over it ends those that are left. The
// set cannot be used after it. It is called once, after Outlast.
func (p *Ports) Leave(ctx context.Context) {
	p.Refuse()
	ended := make(chan struct{})
	go func() {
		p.running.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
	}
	close(p.closing)
	<-ended
	p.workers.close()
}

// end does it at once.
func (p *Ports) end() {
	p.Refuse()
	close(p.closing)
	p.running.Wait()
	p.workers.close()
}
