package substitute

import "github.com/k8singress/k8singress/internal/model/ascii"

// search replaces texts in data, which begins with the held bytes. It holds the end of data that may be the beginning
// of a text, and writes the rest. If last is true, no data follows, and nothing is held.
func (w *Writer) search(data []byte, last bool) error {
	w.pass = pass{data: data, at: w.held, known: unknown}
	for w.unused > 0 && (w.at < len(data) || last && w.pending > 0) {
		w.scan()
		if err := w.settle(last && w.at == len(data)); err != nil {
			return err
		}
	}
	rest := len(data)
	if w.unused > 0 && !last {
		rest -= w.open()
	}
	if err := w.writeLast(data[w.written:rest]); err != nil {
		return err
	}
	if w.held = len(data) - rest; w.held > 0 {
		copy(w.space().held[:], data[rest:])
	}
	w.offset, w.next, w.pass = w.offset+rest, w.next-rest, pass{}
	if w.unused == 0 {
		w.texts = nil
		w.release()
	}
	return nil
}

// open returns the number of bytes before w.at that may be the beginning of a text.
func (w *Writer) open() int { return int(w.texts.nodes[w.node].depth) }

// scan searches data until a text is marked, or to the end. If a text is marked already, it searches one byte.
func (w *Writer) scan() {
	t, data, at, n := w.texts, w.data, w.at, w.node
	for at < len(data) {
		if n == 0 {
			if at = t.next(data, at, &w.known); at == len(data) {
				break
			}
		}
		n = t.step(n, ascii.Lower(data[at]))
		at++
		for ends := n; ends != 0; ends = t.nodes[ends].shorter {
			w.mark(t.nodes[ends].text, at)
		}
		if n = t.nodes[n].open; w.pending > 0 {
			break
		}
	}
	w.at, w.node = at, n
}

// mark marks that a text, or the first equal text that is still to be replaced, ends at an index of w.data.
func (w *Writer) mark(text textNumber, end int) {
	for text != none && w.isUsed(text) {
		text = w.texts.same[text-1]
	}
	if text == none {
		return
	}
	start := end - w.texts.lengths[text-1]
	if w.pending == 0 || start < w.next {
		w.next = start
	}
	switch m := w.markAt(start); {
	case *m == none:
		w.pending++
		*m = text
	case text < *m:
		*m = text
	}
}

func (w *Writer) isUsed(text textNumber) bool { return w.used[text/64]&(1<<(text%64)) != 0 }

// markAt returns the mark of the byte at an index of w.data.
func (w *Writer) markAt(index int) *textNumber { return &w.space().marks[(w.offset+index)%MaxText] }

// settle replaces the marked texts for which no other text can be replaced instead. If last is true, no data follows.
func (w *Writer) settle(last bool) error {
	for w.pending > 0 && (last || w.next < w.at-w.open()) {
		text := *w.markAt(w.next)
		if text == none {
			w.next++
			continue
		}
		if err := w.replace(text); err != nil {
			return err
		}
	}
	return nil
}

// replace writes the data before the text that begins at w.next, and then its replacement.
func (w *Writer) replace(text textNumber) error {
	if err := w.write(w.data[w.written:w.next]); err != nil {
		return err
	}
	w.written = w.next + w.texts.lengths[text-1]
	if w.repeat {
		w.unmark(w.written)
		for w.open() > w.at-w.written {
			w.node = w.texts.nodes[w.texts.nodes[w.node].suffix].open
		}
	} else {
		// Search again behind the text, because a mark may stand for this text, and hide another one. This happens only
		// once for each text.
		w.unmark(w.at)
		w.used[text/64] |= 1 << (text % 64)
		w.unused--
		w.node, w.at, w.known = 0, w.written, unknown
	}
	return w.write(w.replacements[text-1])
}

// unmark removes the marks before the given index of w.data.
func (w *Writer) unmark(end int) {
	for ; w.next < end && w.pending > 0; w.next++ {
		if m := w.markAt(w.next); *m != none {
			*m = none
			w.pending--
		}
	}
}

// write writes a part of the body, or keeps it in the memory until writeLast is called.
func (w *Writer) write(part []byte) error {
	if len(part) == 0 {
		return nil
	}
	out := &w.space().out
	if w.out+len(part) > len(out) {
		if err := w.flushOut(); err != nil {
			return err
		}
		if len(part) > len(out) {
			_, err := w.Writer.Write(part)
			return err
		}
	}
	w.out += copy(out[w.out:], part)
	return nil
}

// writeLast writes a part of the body, and the parts that are kept in the memory.
func (w *Writer) writeLast(part []byte) error {
	if w.out == 0 {
		if len(part) == 0 {
			return nil
		}
		_, err := w.Writer.Write(part)
		return err
	}
	if err := w.write(part); err != nil {
		return err
	}
	return w.flushOut()
}

func (w *Writer) flushOut() error {
	if w.out == 0 {
		return nil
	}
	part := w.space().out[:w.out]
	w.out = 0
	_, err := w.Writer.Write(part)
	return err
}
