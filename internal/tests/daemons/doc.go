// Package daemons runs servers from Debian packages, and their clients, for tests on Linux. The servers listen on
// unused loopback ports, keep their files in separate folders, and stop when the test ends.
package daemons
