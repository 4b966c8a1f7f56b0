package differential

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"
)

// Answer is one HTTP response of a server.
type Answer struct {
	// Status is the status code of the response, or 0 if the connection ended without a response.
	Status int
	// Text is the part of the response that is compared between the two servers.
	Text string
	// Reason is the reason why our server has rejected a request. It is taken from the body of the error response.
	Reason string
}

func (a *Answer) String() string { return fmt.Sprintf("{%d %.1000s %s}", a.Status, a.Text, a.Reason) }

// patience is the maximum time to wait for data from a server. If no data arrives in this time, the test fails.
const patience = 30 * time.Second

// asker sends the requests of cases to one server and reads the responses.
type asker struct {
	address string
	tell    func(*http.Response, []byte, error) string
	// half makes the client close its sending direction of the connection after the last byte of a case.
	half bool
}

// ask sends the requests of a case on one connection. It returns the responses until the connection ends, except
// interim (1xx) responses.
func (a *asker) ask(c *Case) ([]Answer, error) {
	conn, err := dial(a.address)
	if err != nil {
		return nil, err
	}
	defer func() {
		// With SetLinger(0), the connection is closed with a reset, so that its port does not stay in TIME_WAIT for a
		// minute.
		_ = conn.SetLinger(0)
		conn.Close()
	}()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return nil, err
	}
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		if send(conn, c); a.half {
			_ = conn.CloseWrite()
		}
	}()
	answers, err := a.read(bufio.NewReader(conn), c)
	_ = conn.SetDeadline(time.Unix(1, 0))
	<-sent
	return answers, err
}

// dial connects to address from a random loopback address. A million connections from a single loopback address would
// use up its ports.
func dial(address string) (*net.TCPConn, error) {
	from := &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(2+rand.IntN(250)))}
	conn, err := (&net.Dialer{LocalAddr: from}).Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	return conn.(*net.TCPConn), nil
}

// send writes the requests of a case to a connection, in several writes if the case is split into pieces. Write errors
// are ignored, because a server that responds early may not read the rest.
func send(conn net.Conn, c *Case) {
	text, at := c.Text(), 0
	for _, cut := range append(slices.Sorted(slices.Values(c.cuts)), len(text)) {
		if _, err := io.WriteString(conn, text[at:cut]); err != nil {
			return
		}
		at = cut
	}
}

func (a *asker) read(r *bufio.Reader, c *Case) (answers []Answer, err error) {
	for {
		answer, err := a.readOne(r, c.method(len(answers)))
		last := len(answers) - 1
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return answers, fmt.Errorf("the server is silent after %d answers", len(answers))
		case err != nil:
			return answers, nil //nolint:nilerr // Any error ends the connection.
		case answer.Text == old && last >= 0 && c.method(last) == http.MethodHead:
			// The response has a body, so it is not the response to the HEAD request. The server has not seen the HEAD
			// request: it has rejected an earlier request, or has read the start of the HEAD request as a part of a
			// body.
			answers[last].Reason = answer.Reason
			return answers, nil
		case answer.Status >= http.StatusOK:
			answers = append(answers, answer)
		}
	}
}

// old is the text of an HTTP/0.9 response, which has neither a status code nor headers.
const old = "no HTTP"

func (a *asker) readOne(r *bufio.Reader, method string) (Answer, error) {
	if begin, err := r.Peek(1); err == nil && begin[0] != 'H' {
		body, err := io.ReadAll(r)
		return Answer{http.StatusOK, old, reason(string(body))}, err
	}
	response, err := http.ReadResponse(r, &http.Request{Method: method})
	if err != nil {
		return Answer{}, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return Answer{}, err
	}
	answer := Answer{Status: response.StatusCode, Text: a.tell(response, body, err)}
	if answer.Status >= http.StatusBadRequest {
		answer.Reason = reason(string(body))
	}
	return answer, nil
}

// reason returns the reason in the error body of our server, which is the text after the first colon.
func reason(body string) string {
	line, _, _ := strings.Cut(body, "\n")
	_, word, _ := strings.Cut(line, ": ")
	return strings.TrimSpace(word)
}

// method returns the method of the request with index i. It must be known to read the response, because the response to
// a HEAD request has no body.
func (c *Case) method(i int) string {
	if i >= len(c.Requests) {
		return http.MethodGet
	}
	method, _, _ := strings.Cut(strings.TrimLeft(c.Requests[i], "\r\n"), " ")
	return method
}
