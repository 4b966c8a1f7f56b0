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

// Answer is one answer of a server.
type Answer struct {
	// Status is 0 where the connection ended without an answer.
	Status int
	// Text is what is compared.
	Text string
	// Reason is why our server has refused a request: the word behind the status in the body of the answer.
	Reason string
}

func (a *Answer) String() string { return fmt.Sprintf("{%d %.1000s %s}", a.Status, a.Text, a.Reason) }

// patience is how long a server may be silent. No case asks for that.
const patience = 30 * time.Second

// asker is a client of one server.
type asker struct {
	address string
	tell    func(*http.Response, []byte, error) string
	// half has it say that nothing more comes behind the last byte.
	half bool
}

// ask sends a case, and returns the answers until the end of the connection, without interim ones.
func (a *asker) ask(c *Case) ([]Answer, error) {
	conn, err := dial(a.address)
	if err != nil {
		return nil, err
	}
	defer func() {
		// A reset leaves no port behind that is taken for a minute.
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

// dial connects from some address of loopback: from one alone, a million connections would wait for ports.
func dial(address string) (*net.TCPConn, error) {
	from := &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(2+rand.IntN(250)))}
	conn, err := (&net.Dialer{LocalAddr: from}).Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	return conn.(*net.TCPConn), nil
}

// send writes the pieces of a case. A server that has answered early may take no more.
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
			return answers, nil //nolint:nilerr // It is the end of the connection, however it comes.
		case answer.Text == old && last >= 0 && c.method(last) == http.MethodHead:
			// The server has not seen a HEAD: it has refused the head before, or a body has swallowed the beginning.
			answers[last].Reason = answer.Reason
			return answers, nil
		case answer.Status >= http.StatusOK:
			answers = append(answers, answer)
		}
	}
}

// old is the answer of HTTP/0.9, which has no head.
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

// reason returns the word at the end of what our server says.
func reason(body string) string {
	_, word, _ := strings.Cut(body, ": ")
	return strings.TrimSpace(word)
}

// method returns that of a request, so that answers to HEAD are read as such.
func (c *Case) method(i int) string {
	if i >= len(c.Requests) {
		return http.MethodGet
	}
	method, _, _ := strings.Cut(strings.TrimLeft(c.Requests[i], "\r\n"), " ")
	return method
}
