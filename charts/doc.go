// Package charts holds the Helm chart and the tests of its generated files. The tests that need Helm are in test/chart.
package charts

//go:generate go test -run ^TestSchema$ -update
