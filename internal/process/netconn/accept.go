package netconn

import (
	"errors"
	"net"
	"time"
)

// minPause and maxPause limit the wait after a failed accept. The wait doubles with each consecutive failure.
const minPause, maxPause = 5 * time.Millisecond, time.Second

// Accept calls take with each connection that l accepts, and returns when l is closed. After any other error, such as
// too many open files, it calls failed, and tries again after a pause.
func Accept(l net.Listener, take func(net.Conn), failed func(error)) {
	for pause := minPause; ; {
		conn, err := l.Accept()
		switch {
		case err == nil:
			pause = minPause
			take(conn)
		case errors.Is(err, net.ErrClosed):
			return
		default:
			failed(err)
			<-time.After(pause)
			pause = min(2*pause, maxPause)
		}
	}
}
