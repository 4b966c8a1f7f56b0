package nginx_test

import (
	"testing"

	"github.com/k8singress/k8singress/internal/model/nginx"
)

func TestIsControl(t *testing.T) {
	for _, r := range "\x00\t\n\r\x1b\x7f\u0085\u2028\u2029" {
		if !nginx.IsControl(r) {
			t.Errorf("%U is none", r)
		}
	}
	for _, r := range " aé世\u00a0\u200b~" {
		if nginx.IsControl(r) {
			t.Errorf("%U is one", r)
		}
	}
}
