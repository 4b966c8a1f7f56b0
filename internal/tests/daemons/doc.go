// Package daemons runs servers from Debian packages for tests on Linux, together with their client programs. The
// servers listen on unused loopback ports, keep their files in separate folders, and stop when the test ends.
package daemons
