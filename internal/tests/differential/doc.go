// Package differential sends the same HTTP/1.1 requests to two servers, and checks that a table explains each
// difference between their responses. The requests are random: some are ordinary, some have unusual parts, and in some
// one byte is changed. They are sent alone or pipelined, and in one or several writes. Only tests use this package.
package differential
