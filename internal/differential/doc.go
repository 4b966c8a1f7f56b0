// Package differential sends the same HTTP/1.1 requests to two servers, and holds that each difference between their answers is one
// that a table explains. The requests are random: ordinary ones, ones that a table of strange pieces spoils, and ones of which a byte
// has been changed; alone and pipelined, in one piece and in several. It is for tests.
package differential
