package message_test

import (
	"bufio"
	"strings"
)

func reader(text string) *bufio.Reader { return bufio.NewReader(strings.NewReader(text)) }
