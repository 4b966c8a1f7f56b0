package proxy

import (
	"errors"
	"fmt"

	"github.com/k8singress/k8singress/internal/document"
	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/nginx"
)

// SettingsOf checks what a document says.
func SettingsOf(c *document.Proxy) (Settings, error) {
	retry, err := NewRetry(c.RetryOn)
	if err != nil {
		return Settings{}, fmt.Errorf("retry_on: %w", err)
	}
	s := Settings{
		Connect: c.ConnectTimeout, Read: c.ReadTimeout, Write: c.WriteTimeout,
		Tries: max(c.Tries, 1), Total: c.RetryTimeout, Retry: retry,
		Protocol: c.Protocol, Close: c.Connection == "close", MaxBody: c.MaxBody, Prefix: c.Prefix, Index: c.Index,
		StreamRequest: c.StreamRequest || c.Protocol == ir.GRPC || c.Protocol == ir.GRPCS, BufferResponse: c.BufferResponse,
	}
	if c.MaxBody == 0 {
		s.MaxBody = ir.NoLimit
	}
	if s.Connect <= 0 || s.Read <= 0 || s.Write <= 0 {
		return Settings{}, errors.New("connect_timeout, read_timeout and write_timeout are above zero")
	}
	if s.speaksCGI() {
		if s.Params, err = paramsOf(c.Params); err != nil {
			return Settings{}, fmt.Errorf("params: %w", err)
		}
	}
	if c.Host != "" {
		if s.Host, err = nginx.ParseTemplate(c.Host); err != nil {
			return Settings{}, fmt.Errorf("host: %w", err)
		}
	}
	return s, nil
}
