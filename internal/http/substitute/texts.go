// Package substitute replaces texts in the bodies of responses, as nginx's sub_filter does. The time for a body grows
// only with its length, also for texts and bodies that were chosen to make the search slow.
package substitute

import (
	"bytes"

	"github.com/k8singress/k8singress/internal/model/ascii"
)

const (
	// MaxText is the maximum length of a text in bytes. nginx rejects longer arguments of a directive, too.
	MaxText = 4 << 10
	// MaxTexts is the maximum number of texts, as in nginx.
	MaxTexts = 255
)

// Texts is a list of texts to find, without regard to the case of ASCII letters. It is immutable. It is the automaton
// of Aho and Corasick: a tree whose nodes stand for the beginnings of all texts.
type Texts struct {
	// nodes are the nodes of the tree. The first node is its root. It stands for an empty string, and its index 0 also
	// means "none", because the root is never a child.
	nodes []node
	// root has the child of the root for each byte in lower case.
	root [256]int32
	// lengths are the lengths of the texts. same has the number of the next equal text for each text.
	lengths []int
	same    []textNumber
	// firsts are the bytes, in both cases, with which the texts begin. It is nil if there are more than maxFirsts.
	firsts []byte
	// seconds are the bytes, in lower case, that may follow the first byte of a text. If a text has one byte, all bytes
	// may follow.
	seconds [256]bool
}

// textNumber is the index of a text plus 1. The value none stands for no text.
type textNumber uint8

const none textNumber = 0

// maxFirsts is the maximum number of different first bytes that are searched one by one.
const maxFirsts = 4

// node is a beginning of a text.
type node struct {
	// child is the first child, and sibling the next child of the same parent.
	child, sibling int32
	// suffix is the longest proper suffix that is a node, too. open is the longest suffix with children, which may be
	// the node itself. shorter is the longest proper suffix that is a whole text.
	suffix, open, shorter int32
	// depth is the length.
	depth int32
	// text is the first text that equals this node.
	text textNumber
	// char is the last byte, in lower case.
	char byte
}

// NewTexts returns the list of these texts. There must be at most MaxTexts texts, which must not be empty or longer
// than MaxText.
func NewTexts(texts []string) *Texts {
	t := &Texts{nodes: make([]node, 1)}
	for _, text := range texts {
		t.add(text)
	}
	t.link()
	t.index()
	return t
}

func (t *Texts) add(text string) {
	at := int32(0)
	for i := range len(text) {
		at = t.childOf(at, ascii.Lower(text[i]))
	}
	t.lengths, t.same = append(t.lengths, len(text)), append(t.same, none)
	number := textNumber(len(t.lengths))
	first := &t.nodes[at].text
	for *first != none {
		first = &t.same[*first-1]
	}
	*first = number
}

// childOf returns the child of a node for a byte in lower case. It creates the child if necessary.
func (t *Texts) childOf(parent int32, c byte) int32 {
	if child := t.child(parent, c); child != 0 {
		return child
	}
	child := int32(len(t.nodes))
	t.nodes = append(t.nodes, node{char: c, depth: t.nodes[parent].depth + 1, sibling: t.nodes[parent].child})
	t.nodes[parent].child = child
	if parent == 0 {
		t.root[c] = child
	}
	return child
}

// child returns the child of a node for a byte in lower case, or 0 if there is no such child.
func (t *Texts) child(parent int32, c byte) int32 {
	if parent == 0 {
		return t.root[c]
	}
	for n := t.nodes[parent].child; n != 0; n = t.nodes[n].sibling {
		if t.nodes[n].char == c {
			return n
		}
	}
	return 0
}

// link sets the fields of all nodes that refer to suffixes. It visits shorter nodes first.
func (t *Texts) link() {
	queue := make([]int32, 1, len(t.nodes))
	for i := 0; i < len(queue); i++ {
		n := queue[i]
		of := &t.nodes[n]
		if suffix := &t.nodes[of.suffix]; suffix.text != none {
			of.shorter = of.suffix
		} else {
			of.shorter = suffix.shorter
		}
		of.open = n
		if of.child == 0 {
			of.open = t.nodes[of.suffix].open
		}
		for child := of.child; child != 0; child = t.nodes[child].sibling {
			if n != 0 {
				t.nodes[child].suffix = t.step(of.suffix, t.nodes[child].char)
			}
			queue = append(queue, child)
		}
	}
}

// index sets firsts and seconds.
func (t *Texts) index() {
	for n := t.nodes[0].child; n != 0; n = t.nodes[n].sibling {
		c := t.nodes[n].char
		t.firsts = append(t.firsts, c)
		if 'a' <= c && c <= 'z' {
			t.firsts = append(t.firsts, c-'a'+'A')
		}
		for i := range t.seconds {
			t.seconds[i] = t.seconds[i] || t.nodes[n].text != none || t.child(n, byte(i)) != 0
		}
	}
	if len(t.firsts) > maxFirsts {
		t.firsts = nil
	}
}

// step returns the longest suffix of n followed by c that is a node. c must be in lower case.
func (t *Texts) step(n int32, c byte) int32 {
	for ; n != 0; n = t.nodes[n].suffix {
		if child := t.child(n, c); child != 0 {
			return child
		}
	}
	return t.root[c]
}

// nearest has the position of the next occurrence of each byte of Texts.firsts. A position before the search is not
// valid.
type nearest [maxFirsts]int

// unknown is a nearest without valid positions.
var unknown = nearest{-1, -1, -1, -1}

// next returns the index of the first byte in data, beginning with the index from, with which a text may begin. It
// returns the length of data if there is no such byte.
func (t *Texts) next(data []byte, from int, known *nearest) int {
	for {
		if from = t.nextFirst(data, from, known); from+1 >= len(data) || t.seconds[ascii.Lower(data[from+1])] {
			return from
		}
		from++
	}
}

// nextFirst is like next, but it ignores the second bytes of the texts.
func (t *Texts) nextFirst(data []byte, from int, known *nearest) int {
	if t.firsts == nil {
		for from < len(data) && t.root[ascii.Lower(data[from])] == 0 {
			from++
		}
		return from
	}
	first := len(data)
	for i, c := range t.firsts {
		if known[i] < from {
			known[i] = len(data)
			if n := bytes.IndexByte(data[from:], c); n >= 0 {
				known[i] = from + n
			}
		}
		first = min(first, known[i])
	}
	return first
}
