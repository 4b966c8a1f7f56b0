package endpoints

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/yaml"

	"github.com/k8singress/k8singress/internal/model/ir"
)

// resolveCase is one file of testdata/resolve.
type resolveCase struct {
	Slices  []*discoveryv1.EndpointSlice `json:"slices"`
	Backend ir.Backend                   `json:"backend"`
	Zone    string                       `json:"zone"`
	// UseVirtualAddress is not part of documents, so it is a separate field.
	UseVirtualAddress bool     `json:"useVirtualAddress"`
	Want              []string `json:"want"`
}

func TestResolve(t *testing.T) {
	files, err := filepath.Glob("testdata/resolve/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no test data: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			c := readCase(t, file)
			check(t, Resolve(slices.Values(c.Slices), &c.Backend, c.Zone), c.Want)
			slices.Reverse(c.Slices)
			for _, s := range c.Slices {
				slices.Reverse(s.Endpoints)
			}
			check(t, Resolve(slices.Values(c.Slices), &c.Backend, c.Zone), c.Want)
		})
	}
}

func readCase(t *testing.T, file string) *resolveCase {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	c := &resolveCase{Backend: ir.Backend{Protocol: ir.TCP}}
	if err := yaml.UnmarshalStrict(data, c); err != nil {
		t.Fatal(err)
	}
	c.Backend.LoadBalancing.UseVirtualAddress = c.UseVirtualAddress
	return c
}

func check(t *testing.T, got []ir.Endpoint, want []string) {
	t.Helper()
	addresses := make([]string, len(got))
	for i, e := range got {
		addresses[i] = e.Address
	}
	if !slices.Equal(addresses, want) {
		t.Errorf("endpoints %q, want %q", addresses, want)
	}
}
