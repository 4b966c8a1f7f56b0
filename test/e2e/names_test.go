package e2e

import (
	"net"
	"net/netip"
	"strings"
	"sync"

	"golang.org/x/net/dns/dnsmessage"
)

// names is a DNS server. The testbed has none.
type names struct {
	address string

	mu        sync.Mutex
	addresses map[string][]string
}

// serveNames starts a DNS server that stops when the test ends.
func (c *cluster) serveNames() *names {
	c.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	c.must(err)
	n := &names{address: conn.LocalAddr().String(), addresses: map[string][]string{}}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		n.serve(conn)
	}()
	c.Cleanup(func() {
		_ = conn.Close()
		<-ended
	})
	return n
}

func (n *names) set(name string, addresses ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.addresses[name] = addresses
}

func (n *names) get(name dnsmessage.Name) ([]string, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	addresses, ok := n.addresses[strings.TrimSuffix(strings.ToLower(name.String()), ".")]
	return addresses, ok
}

func (n *names) serve(conn net.PacketConn) {
	buffer := make([]byte, 4096)
	for {
		size, client, err := conn.ReadFrom(buffer)
		if err != nil {
			return
		}
		var question dnsmessage.Message
		if question.Unpack(buffer[:size]) != nil || len(question.Questions) != 1 {
			continue
		}
		reply := n.reply(question)
		if packed, err := reply.Pack(); err == nil {
			_, _ = conn.WriteTo(packed, client)
		}
	}
}

// reply returns the IPv4 addresses of a name with a TTL of 0.
func (n *names) reply(question dnsmessage.Message) dnsmessage.Message {
	asked := question.Questions[0]
	reply := dnsmessage.Message{Questions: question.Questions}
	reply.ID, reply.Response, reply.Authoritative, reply.RecursionDesired = question.ID, true, true,
		question.RecursionDesired
	addresses, ok := n.get(asked.Name)
	if !ok {
		reply.RCode = dnsmessage.RCodeNameError
	}
	if asked.Type != dnsmessage.TypeA {
		return reply
	}
	for _, address := range addresses {
		reply.Answers = append(reply.Answers, dnsmessage.Resource{
			Header: dnsmessage.ResourceHeader{Name: asked.Name, Type: asked.Type, Class: asked.Class},
			Body:   &dnsmessage.AResource{A: netip.MustParseAddr(address).As4()},
		})
	}
	return reply
}
