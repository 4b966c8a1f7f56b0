package differential

import "strings"

// The parts from which requests are generated. The first three elements of each list are ordinary, and are chosen most
// often. A wrong body length is either shorter than the tail that ends each case or larger than any limit, so that no
// server waits for bytes that are never sent.
var (
	methods = []string{"GET", "POST", "PUT", "HEAD", "OPTIONS", "DELETE", "PATCH", "FROB", "get", "G,T", "G:T",
		"CONNECT", "TRACE", "PRI", ""}

	targets = []string{
		"/", "/a/b?c=d", "/a%20b", "//a//b", "/?", "/a?b?c=/d", "/a;b=c/d", "/%61%2F%5c", "/%C3%A9", "/~!$&'()*+,:@",
		"/a/../b", "/../a", "/a/./b", "/a/%2e%2e/b", "/a/..%2fb", "/a/..;/b", "/.", "/..", "/a/..",
		"http://b/x?y", "http://b:80", "HTTP://B/X", "https://b/x", "http://b?x", "http://", "http:///x",
		"http://b/../x", "http://u@b/",
		"ftp://b/",
		"*", "a:1", "b.example:443", "b.example", "a/b", "?x", "",
		"/%zz", "/%", "/%4", "/x%00", "/a%0d%0ab", "/%ff", "/\x80", "/é", "/a b", "/a\tb", "/a\x00b", "/a\x7fb",
		"/a\x0bb", "/a\rb",
		"/a|b", "/a\\b", "/a\"<>^`{}b", "/a[b]", "/a#b", "/a?%00", "/a?\"<>`{}|\\^", "/a?x#y", "/a?é",
		"/" + strings.Repeat("x", 2000), "/?" + strings.Repeat("x", 7000), "/" + strings.Repeat("x", 9000),
	}

	versions = []string{
		" HTTP/1.1", " HTTP/1.1", " HTTP/1.1", " HTTP/1.0", " HTTP/1.0", " HTTP/1.0", " HTTP/1.0", " HTTP/1.0",
		" HTTP/1.0", " HTTP/1.2",
		" HTTP/1.9", " HTTP/2.0", " HTTP/0.9", " HTTP/3.0", " http/1.1", " HTTP/1.1 ",
		"  HTTP/1.1", "\tHTTP/1.1", " HTTP/1.10", " HTTP/01.1", " HTTP/1", " HTTP/1.", " HTTP 1.1", " HTTPS/1.1",
		" HTTP/1.1\t", " HTTP/1.1\r", "",
		" ",
	}

	hosts = []string{
		"Host: a\r\n", "Host: a:80\r\n", "host: A.b\r\n", "HOST:a\r\n", "Host: \t a \t\r\n", "",
		"Host: a\r\nHost: a\r\n", "Host: a\r\nHost: b\r\n",
		"Host:\r\n", "Host: a/b\r\n", "Host: a b\r\n", "Host: a,b\r\n", "Host: a:b\r\n", "Host: a:\r\n",
		"Host: a:99999\r\n", "Host: :80\r\n",
		"Host: u@a\r\n", "Host: a?b\r\n", "Host: a#b\r\n", "Host: a\\b\r\n", "Host: a..b\r\n", "Host: .a\r\n",
		"Host: a.\r\n", "Host: ..\r\n",
		"Host: [::1]\r\n", "Host: [::1]:80\r\n", "Host: [::1\r\n", "Host: []\r\n", "Host: [::1%25lo]\r\n",
		"Host: [x]\r\n", "Host: 127.0.0.1\r\n",
		"Host: a%2eb\r\n", "Host: a_b\r\n", "Host: \x80\r\n", "Host: a\x00\r\n", "Host : a\r\n", "Host: a\tb\r\n",
	}

	fields = []string{
		"", "X-A: b\r\n", "Cookie: a=b; c=d\r\n", "X-A:  b \t\r\nx-a:c\r\n", "X-Empty:\r\n", "X-Empty: \t \r\n",
		"Cookie: a=b\r\nCookie: c=d\r\n",
		"Accept: */*\r\nUser-Agent: test\r\nAccept-Encoding: gzip\r\n", "Content-Type: a/b\r\n", "Date: x\r\n",
		"Authorization: x\r\n",
		"Connection: keep-alive\r\n", "Connection: close\r\n", "Connection: CLOSE\r\n",
		"Connection: Keep-Alive, close\r\n",
		"Connection: keep-alive,close\r\n",
		"Connection: close, keep-alive\r\n", "Connection: ,\r\n",
		"Connection: X-A, close\r\nX-A: b\r\n", "Connection: X-A\r\nX-A: b\r\n", "Connection: Host\r\n",
		"Connection: Cookie\r\nCookie: a=b\r\n",
		"Connection: X-Forwarded-For\r\n", "Connection: closed\r\n", "Connection: close\r\nConnection: keep-alive\r\n",
		"Connection: keep-alive\r\nConnection: close\r\n", "Connection: content-length\r\n",
		"Connection: transfer-encoding\r\n",
		"Connection: upgrade\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n",
		"Connection: upgrade\r\nUpgrade: websocket\r\n",
		"Upgrade: websocket\r\n", "Keep-Alive: timeout=5\r\n", "Proxy-Connection: close\r\n", "TE: trailers\r\n",
		"TE: gzip\r\n",
		"Trailer: X-T\r\n",
		"X-Forwarded-For: 6.6.6.6\r\nX-Forwarded-Proto: https\r\nX-Real-IP: 6.6.6.6\r\n",
		"X_Forwarded_For: 6.6.6.6\r\n", "X.Real.IP: 6.6.6.6\r\n",
		"Forwarded: for=6.6.6.6\r\n", "Proxy: x\r\n", "Proxy-Authorization: x\r\n", "X-Request-ID: abc\r\n",
		"X-Original-URI: /x\r\n",
		"Max-Forwards: 0\r\n",
		"Expect: x\r\n", "Expect:\r\n", "Expect: 100-continue\r\n", "Expect: 100-Continue, x\r\n",
		"Range: bytes=0-0\r\n", "If-None-Match: *\r\n",
		"X-A: \x80\xff\r\n", "X-A: b\n", "X-A: b\r\n c\r\n", "X-A:\r\n b\r\n", "X-A: b\r\n\tc: d\r\n", " X-A: b\r\n",
		"\tX-A: b\r\n",
		"X-A : b\r\n", "X-A\t: b\r\n", "X A: b\r\n", "X-A: b\x00\r\n", "X\x00A: b\r\n", "X-A: b\x01\r\n",
		"X-A: b\x7f\r\n", "X-A: b\x0bc\r\n",
		"X-A: b\rX-B: c\r\n",
		"X-A: b\r\r\n", ": b\r\n", "X-A\r\n", "X-A;b\r\n", "X!A: b\r\n", "X(A: b\r\n", "X\x80A: b\r\n", "X\"A: b\r\n",
		"\r\r\n", "\n",
		"X-Long: " + strings.Repeat("x", 7000) + "\r\n", "X-Long: " + strings.Repeat("x", 9000) + "\r\n",
		"X-Long: " + strings.Repeat("x", 40000) + "\r\n",
		strings.Repeat("x", 300) + ": b\r\n", strings.Repeat("X-Many: y\r\n", 90), strings.Repeat("X-Many: y\r\n", 300),
		strings.Repeat("a:\r\n", 260),
		strings.Repeat("Cookie: "+strings.Repeat("c", 1000)+"\r\n", 20),
	}
)

// hello is the empty line at the end of the request headers, followed by a body that consists of one chunk.
const hello = "\r\n5\r\nhello\r\n0\r\n\r\n"

// codings are Transfer-Encoding header lines, each sent with the same body.
var codings = []string{
	"Transfer-Encoding: Chunked\r\n", "Transfer-Encoding:chunked\t\r\n", "Transfer-Encoding:\tchunked \r\n",
	"Transfer-Encoding: gzip, chunked\r\n",
	"Transfer-Encoding: chunked, chunked\r\n", "Transfer-Encoding: chunked, gzip\r\n",
	"Transfer-Encoding: xchunked\r\n",
	"Transfer-Encoding: identity\r\n",
	"Transfer-Encoding: , chunked\r\n", "Transfer-Encoding: chunked,\r\n", "Transfer-Encoding:\r\n",
	"Transfer-Encoding: \"chunked\"\r\n",
	"Transfer-Encoding: chunked;a=b\r\n", "Transfer-Encoding: chunked\x0b\r\n", "Transfer-Encoding: chunked\x00\r\n",
	"Transfer-Encoding:\r\n chunked\r\n",
	"Transfer-Encoding : chunked\r\n", "Transfer_Encoding: chunked\r\n",
	"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
	"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
	"Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n",
	"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
	"Content-Length: 15\r\nTransfer-Encoding: chunked\r\n", "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n",
	"Transfer-Encoding: chunked\n",
	"X: y\rTransfer-Encoding: chunked\r\n", "Transfer-Encoding\r\n: chunked\r\n",
	"Transfer-Encoding: chunked\r\nContent-Length: x\r\n",
}

// lengths are values of the header Content-Length. Each is sent with a body of five bytes.
var lengths = []string{
	"05", "00000000000000000000005", "4", "6", "35", "+5", "-5", "-0", "5.0", "5e0", "0x5", "5 ", "\t5\t", "", "x",
	"5x", "5,", ",5", "5, 5", "5,5",
	"5, 6", "5 5",
	"\"5\"", "5;", "5\x00", "5\x0b", "1_0", "\xd9\xa5", "9223372036854775807", "9223372036854775808",
	"18446744073709551615",
	"18446744073709551621",
	"9999999999999999999999", "1000000000000", "5\r\nContent-Length: 5", "5\r\nContent-Length: 6",
	"6\r\nContent-Length: 5",
	"5\r\ncontent-length:5",
	"5\r\nContent-Length:", "5\r\nContent_Length: 6", "5\r\nContent-Length : 6", "5\r\n 6", "5\nContent-Length: 6",
	"5\r\nExpect: 100-continue",
}

// chunks are request bodies for "Transfer-Encoding: chunked".
var chunks = []string{
	"2;a=b\r\nhe\r\n3\r\nllo\r\n0\r\nX-T: u\r\n\r\n", "2;a=\"b;\\\"c\"\r\nhe\r\n0\r\n\r\n", "2 ;a\r\nhe\r\n0\r\n\r\n",
	"2\t\r\nhe\r\n0\r\n\r\n",
	"2 \r\nhe\r\n0\r\n\r\n",
	"2;\r\nhe\r\n0\r\n\r\n", "2;a=b\rc\r\nhe\r\n0\r\n\r\n", "2;a=b\nhe\r\n0\r\n\r\n", "2;a\x00\r\nhe\r\n0\r\n\r\n",
	"2 x\r\nhe\r\n0\r\n\r\n",
	"2=x\r\nhe\r\n0\r\n\r\n",
	"002\r\nhe\r\n000\r\n\r\n", "00000000000000000002\r\nhe\r\n0\r\n\r\n",
	"a\r\n0123456789\r\nA\r\n0123456789\r\n0\r\n\r\n",
	" 2\r\nhe\r\n0\r\n\r\n",
	"0x2\r\nhe\r\n0\r\n\r\n", "+2\r\nhe\r\n0\r\n\r\n", "-1\r\n\r\n", "g\r\n\r\n", "\r\n\r\n",
	"\r\n2\r\nhe\r\n0\r\n\r\n", ";a\r\nhe\r\n0\r\n\r\n",
	"5\r\nhelloX\r\n0\r\n\r\n", "5\nhello\r\n0\r\n\r\n", "5\r\nhello\n0\r\n\r\n", "5\r\nhello0\r\n\r\n",
	"5\r\nhello\r0\r\n\r\n",
	"5\rhello\r\n0\r\n\r\n",
	"4\r\nhello\r\n0\r\n\r\n", "6\r\nhello\r\n0\r\n\r\n", "20\r\nhello\r\n0\r\n\r\n", "7fffffffffffffff\r\nhello",
	"8000000000000000\r\nhello",
	"ffffffffffffffff\r\nhello", "10000000000000005\r\nhello\r\n0\r\n\r\n",
	"2\r\nhe\r\n0\r\nContent-Length: 5\r\nHost: x\r\nX-T: u\r\n\r\n", "2\r\nhe\r\n0\r\nX-T: u\nX-U: v\r\n\r\n",
	"2\r\nhe\r\n0\r\nX-T : u\r\n\r\n",
	"2\r\nhe\r\n0\r\n X-T: u\r\n\r\n", "2\r\nhe\r\n0\r\nX-T\r\n\r\n", "2\r\nhe\r\n0\r\n: u\r\n\r\n",
	"2\r\nhe\r\n0\r\nX-T: u\x00\r\n\r\n",
	"2\r\nhe\r\n0\r\nX-T: u\r\n v\r\n\r\n",
	"2\r\nhe\r\n0;a=b\r\n\r\n", "2\r\nhe\r\n0\n\r\n", "2\r\nhe\r\n0\r\n\n",
	"2\r\nhe\r\n0\r\nTransfer-Encoding: chunked\r\nX_T: u\r\n\r\n",
	strings.Repeat("1\r\nx\r\n", 200) + "0\r\n\r\n", "1;" + strings.Repeat("e", 300) + "\r\nx\r\n0\r\n\r\n",
	strings.Repeat("1;"+strings.Repeat("e", 900)+"\r\nx\r\n", 40) + "0\r\n\r\n",
	"4e20\r\n" + strings.Repeat("x", 20000) + "\r\n0\r\n\r\n",
	"1\r\nx\r\n0\r\nX-T: " + strings.Repeat("t", 9000) + "\r\n\r\n",
	"1\r\nx\r\n0\r\n" + strings.Repeat("X-T: u\r\n", 300) + "\r\n",
}

// ends are the possible ends of a request: the header fields that define the body length, the empty line, and the body.
var ends = func() []string {
	all := []string{
		"\r\n", "Content-Length: 5\r\n\r\nhello", "Transfer-Encoding: chunked\r\n" + hello, "Content-Length: 0\r\n\r\n",
		"Content-Length: 5\r\nExpect: 100-continue\r\n\r\nhello",
		"Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n" + hello,
		"Content-Length: 20000\r\n\r\n" + strings.Repeat("x", 20000), "\n", "\r\r\n",
	}
	for _, coding := range codings {
		all = append(all, coding+hello)
	}
	for _, length := range lengths {
		all = append(all, "Content-Length: "+length+"\r\n\r\nhello")
	}
	for _, body := range chunks {
		all = append(all, "Transfer-Encoding: chunked\r\n\r\n"+body)
	}
	return all
}()

// before contains strings that may be sent before a request.
var before = []string{"\r\n", "\r\n\r\n", "\r\n\r\n\r\n\r\n\r\n\r\n", "\n", " ", "\r", "\x00", "\t", "\x16\x03\x01"}

// noise contains the bytes that the method mutate inserts into a request, or with which it replaces a byte.
const noise = "\r\n\x00\t :;,/%-0ag\x7f\x80\""
