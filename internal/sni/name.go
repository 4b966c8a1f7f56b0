package sni

const (
	versionLength   = 2
	randomLength    = 32
	extensionName   = 0
	nameTypeHost    = 0
	lengthOfByte    = 1
	lengthOfTwo     = 2
	extensionNumber = 2
)

// serverName reads the message of a hello.
func serverName(message []byte) (string, State) {
	body := fields(message[messageHead : messageHead+lengthOf(message)])
	_, ok := body.take(versionLength + randomLength)
	for _, length := range []int{lengthOfByte, lengthOfTwo, lengthOfByte} {
		// The session, the ciphers and the methods of compression.
		_, one := body.vector(length)
		ok = ok && one
	}
	if !ok {
		return "", Other
	}
	if len(body) == 0 {
		// TLS without extensions.
		return "", Complete
	}
	extensions, ok := body.vector(lengthOfTwo)
	if !ok || len(body) > 0 {
		return "", Other
	}
	return nameAmong(extensions)
}

// nameAmong refuses a hello with two names: who ends TLS might take the other one.
func nameAmong(extensions fields) (name string, s State) {
	found := false
	for len(extensions) > 0 {
		number, ok := extensions.take(extensionNumber)
		content, there := extensions.vector(lengthOfTwo)
		if !ok || !there {
			return "", Other
		}
		if number[0] != 0 || number[1] != extensionName {
			continue
		}
		if found {
			return "", Other
		}
		if name, found = hostIn(content); !found {
			return "", Other
		}
	}
	return name, Complete
}

// hostIn reads a list of names, of which one is that of a host.
func hostIn(content fields) (name string, ok bool) {
	list, ok := content.vector(lengthOfTwo)
	if !ok || len(content) > 0 {
		return "", false
	}
	for len(list) > 0 {
		kind, isKind := list.take(1)
		value, isValue := list.vector(lengthOfTwo)
		switch {
		case !isKind || !isValue || len(value) == 0:
			return "", false
		case kind[0] != nameTypeHost:
		case name != "":
			return "", false
		default:
			name = string(value)
		}
	}
	return name, name != ""
}

// fields are the bytes of a message that have not been read yet.
type fields []byte

func (f *fields) take(n int) (fields, bool) {
	if len(*f) < n {
		return nil, false
	}
	taken := (*f)[:n]
	*f = (*f)[n:]
	return taken, true
}

// vector takes bytes with their number in front, which is itself so many bytes long.
func (f *fields) vector(length int) (fields, bool) {
	head, ok := f.take(length)
	if !ok {
		return nil, false
	}
	n := 0
	for _, b := range head {
		n = n<<8 | int(b)
	}
	return f.take(n)
}
