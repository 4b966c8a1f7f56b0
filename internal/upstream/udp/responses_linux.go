package udp

// receiveResponses receives datagrams from the endpoint of a session and adds them to the current batch, which
// sendResponses sends to the clients.
func (f *Forwarder) receiveResponses(s *session) {
	b := f.batch
	if b.responded == batchSize {
		f.sendResponses()
	}
	n, err := receiveMessages(s.upstream.socket, b.responses[b.responded:])
	if err != nil {
		if isUnreachable(err) {
			f.onRefused(s, err)
		}
		return
	}
	from, carried := b.responded, load{}
	b.responded += n
	for i := from; i < b.responded; i++ {
		b.parse(i, &b.responses[i])
		carried.add(b.carried(i))
	}
	s.sent += uint64(carried.bytes)
	b.outgoing.add(b.vectors[from:b.responded], b.sizes[from:b.responded], &s.toClient)
	f.sessions.touch(s, f.now)
	if s.countResponses(carried.datagrams, f.now, f.settings.Responses) {
		f.remove(s)
	}
}

// sendResponses sends the datagrams that were received from endpoints in the current batch to their clients.
func (f *Forwarder) sendResponses() {
	b, o, traffic := f.batch, &f.batch.outgoing, f.traffic
	for at := 0; at < o.count; {
		n, err := sendMessages(f.socket, o.messages[at:o.count])
		traffic.Out.add(o.total(at, at+n))
		at += n
		switch {
		case err == nil:
		case isBusy(err):
			traffic.lose(ClientBusy, o.total(at, o.count).datagrams)
			at = o.count
		case o.isGSO(at):
			sent := o.sendSegments(f.socket, at)
			traffic.Out.add(sent)
			traffic.lose(NotSendable, o.loads[at].datagrams-sent.datagrams)
			at++
		default:
			traffic.lose(NotSendable, 1)
			at++
		}
	}
	for i := range b.responded {
		b.reset(i)
	}
	b.responded, o.count = 0, 0
}
