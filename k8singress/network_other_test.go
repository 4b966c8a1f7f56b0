//go:build !linux

package k8singress_test

import "testing"

// Only Linux has network namespaces.

func inItsOwnNetwork() bool { return false }

func ranInItsOwnNetwork(*testing.T) bool { return false }
