package featuretests

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestMissingFolder checks that the reason is reported if all requests get 503 because the folder is missing.
func TestMissingFolder(t *testing.T) {
	in := newIngress(t)
	folder := filepath.Join(in.folder, "missing")
	in.load("manifests " + folder)
	in.eventually("the reason", func() error {
		if got := in.reasons("File/."); !slices.Equal(got, []string{"InvalidManifest"}) {
			return os.ErrNotExist
		}
		return nil
	})
	in.expect("shop.example", "/", http.StatusServiceUnavailable, "")
	if in.status().Ready {
		t.Error("it is ready")
	}
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	in.awaitReady()
	if got := in.reasons("File/."); len(got) > 0 {
		t.Errorf("there is still %v", got)
	}
}
