package message

import (
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// FromHTTP fills r from a net/http request that no handler has changed yet. It drops the fields that the client lists
// in the Connection field, and the fields whose names r.Names does not allow. It does not change r.Names and
// r.LiftBodyTimeout. Fields with different names are in no particular order, because net/http does not keep the order.
func (r *Request) FromHTTP(from *http.Request) {
	r.Update(from)
	r.NominatesTooMany = !r.Fields.RemoveNominated(NotRemovable)
}

// Update fills r again from a net/http request that Caddy handlers may have changed since FromHTTP was called. Unlike
// FromHTTP, it keeps the fields that the client lists in the Connection field. Otherwise the client could remove fields
// that a handler has set.
func (r *Request) Update(from *http.Request) {
	fields := r.Fields[:0]
	*r = Request{
		Method: from.Method, Host: from.Host, Target: TargetOf(from), Path: from.URL.Path,
		EscapedPath: from.URL.EscapedPath(),
		Query:       from.URL.RawQuery, ForceQuery: from.URL.ForceQuery, Major: uint8(from.ProtoMajor),
		Minor:  uint8(from.ProtoMinor),
		Length: from.ContentLength, Conn: connOf(from), ctx: from.Context(), Names: r.Names,
		LiftBodyTimeout: r.LiftBodyTimeout,
	}
	if from.Body != nil && from.Body != http.NoBody && from.ContentLength != 0 {
		r.Body = from.Body
		if from.Trailer != nil {
			r.Trailers = func() Fields { return FieldsOf(from.Trailer).TrailerFields() }
		}
	} else {
		r.Length = 0
	}
	if from.URL.Opaque == "" && r.Path != "*" && !strings.HasPrefix(r.Path, "/") {
		// Add the leading slash, which a handler may have stripped together with a prefix of the path.
		r.Path, r.EscapedPath = "/"+r.Path, "/"+r.EscapedPath
	}
	r.Fields = appendFields(fields, from.Header).Allowed(r.Names)
}

// Revert restores what Update has changed, except the path, the query and the header fields. before is a copy of r from
// before the handlers ran. Resources of the handlers, such as a context or a wrapped body, may be gone when the
// handlers have returned. The part of the body that they have read is lost.
func (r *Request) Revert(before *Request) {
	to := *before
	to.Path, to.EscapedPath, to.Query, to.ForceQuery = r.Path, r.EscapedPath, r.Query, r.ForceQuery
	to.Fields, to.text = r.Fields, r.text
	*r = to
}

// appendFields appends the fields of header to the list, in no particular order.
func appendFields(to Fields, header http.Header) Fields {
	for name, values := range header {
		kind := KindOf(name)
		for _, value := range values {
			to = append(to, Field{name, value, kind})
		}
	}
	return to
}

// TargetOf returns the path and query of the request target. If the target is an absolute URL, as in requests to a
// proxy, its scheme and host are left out.
func TargetOf(r *http.Request) string {
	if strings.HasPrefix(r.RequestURI, "/") {
		return r.RequestURI
	}
	return r.URL.RequestURI()
}

func connOf(r *http.Request) *Conn {
	remote, _ := netip.ParseAddrPort(r.RemoteAddr)
	var local netip.AddrPort
	if address, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
		local, _ = netip.ParseAddrPort(address.String())
	}
	return NewConn(remote, local, r.TLS)
}

// ToHTTP returns an *http.Request for net/http and Caddy handlers, with the same context and body as r.
func (r *Request) ToHTTP() *http.Request {
	to := &http.Request{
		Method: r.Method, URL: r.URL(), Proto: r.Protocol(), ProtoMajor: int(r.Major), ProtoMinor: int(r.Minor),
		Header: r.Fields.Header(), Host: r.Host, ContentLength: r.Length, RequestURI: r.Target, TLS: r.Conn.TLS,
		Body: http.NoBody,
	}
	if r.Conn.Remote.IsValid() {
		to.RemoteAddr = r.Conn.Remote.String()
	}
	if r.Body != nil {
		to.Body = readCloser(r.Body)
	}
	if r.Trailers != nil {
		to.Trailer = http.Header{}
		to.Body = &trailed{to.Body, to.Trailer, r.Trailers}
	}
	ctx := r.Context()
	if r.Conn.Local.IsValid() && ctx.Value(http.LocalAddrContextKey) == nil {
		ctx = context.WithValue(ctx, http.LocalAddrContextKey, net.Addr(net.TCPAddrFromAddrPort(r.Conn.Local)))
	}
	return to.WithContext(ctx)
}

// URL returns the path and query, with the changes that filters made, as a URL without scheme and host.
func (r *Request) URL() *url.URL {
	u := &url.URL{Path: r.Path, RawQuery: r.Query, ForceQuery: r.ForceQuery}
	if u.EscapedPath() != r.EscapedPath {
		u.RawPath = r.EscapedPath
	}
	return u
}

// Header returns the fields as a net/http header.
func (f Fields) Header() http.Header {
	header := make(http.Header, len(f))
	values := make([]string, len(f))
	for i := range f {
		name := http.CanonicalHeaderKey(f[i].Name)
		values[i] = f[i].Value
		if before, ok := header[name]; ok {
			header[name] = append(before, f[i].Value)
			continue
		}
		// Limit the capacity of the slice, so that appending to it does not overwrite the value of the next field.
		header[name] = values[i : i+1 : i+1]
	}
	return header
}

// FieldsOf returns the fields of a net/http header, sorted by name.
func FieldsOf(header http.Header) Fields {
	fields := appendFields(make(Fields, 0, len(header)), header)
	slices.SortStableFunc(fields, func(a, b Field) int { return strings.Compare(a.Name, b.Name) })
	return fields
}

func readCloser(r io.Reader) io.ReadCloser {
	if closer, ok := r.(io.ReadCloser); ok {
		return closer
	}
	return io.NopCloser(r)
}

// trailed is the body of an *http.Request. When it was read to its end, it adds the trailer fields of the request to
// trailer.
type trailed struct {
	io.ReadCloser
	trailer  http.Header
	trailers func() Fields
}

func (t *trailed) Read(p []byte) (int, error) {
	n, err := t.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) && t.trailers != nil {
		maps.Copy(t.trailer, t.trailers().Header())
		t.trailers = nil
	}
	return n, err
}
