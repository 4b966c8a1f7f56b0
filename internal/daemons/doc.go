// Package daemons runs servers that Debian has, and their clients, for tests. They listen on ports of loopback that nobody
// else uses, keep their files in a folder of their own, and end with the test. It is for Linux.
package daemons
