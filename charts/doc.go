// Package charts holds the Helm chart, and the tests of what is printed for it. test/chart has those that take Helm.
package charts

//go:generate go test -run ^TestSchema$ -update
