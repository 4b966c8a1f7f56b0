// Package differential sends the same HTTP/1.1 requests to two servers, and checks that a table explains each
// difference between their responses. The requests are random: ordinary ones, ones with unusual parts from a table, and
// ones with a changed byte. They are sent alone and pipelined, in one piece and in several. Only tests use this
// package.
package differential
