// Projects whose definitions of kinds the tests take from their modules, as files: go.sum has the sums of these alone, so `go mod tidy` is not
// for this file.
module github.com/k8singress/k8singress/test/e2e/testdata/crds

go 1.26.0

require (
	github.com/cert-manager/cert-manager v1.19.2
	github.com/kedacore/keda/v2 v2.18.0
	github.com/prometheus-operator/prometheus-operator v0.85.0
)
