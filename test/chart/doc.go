// Package chart holds the tests of charts/k8singress that render it with Helm. It is a module of its own, because Helm
// needs another version of Kubernetes than test/ runs.
package chart

//go:generate go test -run ^TestDeploy$ -update
