// Package chart tests charts/k8singress by rendering it with Helm. It is in a separate module, because Helm needs
// another version of the Kubernetes libraries than test/.
package chart

//go:generate go test -run ^(TestDeploy|TestSeries)$ -update
