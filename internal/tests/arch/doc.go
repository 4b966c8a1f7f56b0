// Package arch checks the order in which the packages of this module import each other. It contains only tests: the
// table of the packages is in house_test.go, and every new package needs a row there.
package arch
