package document_test

import (
	"testing"

	"github.com/k8singress/k8singress/internal/model/document"
)

func TestEncodeModule(t *testing.T) {
	type size struct {
		Bytes int `json:"bytes,omitempty"`
	}
	for want, module := range map[string]any{
		`{"handler":"limit","bytes":8}`: size{8},
		`{"handler":"limit"}`:           size{},
	} {
		if got := string(document.EncodeModule("handler", "limit", module)); got != want {
			t.Errorf("%+v is %s, and not %s", module, got, want)
		}
	}
}
