// Package arch holds the order in which the packages of this module import each other. It is a test only: the table of
// the rooms is in house_test.go, and every new package needs a row there.
package arch
