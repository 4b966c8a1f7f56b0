package main

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// faults is a handler in front of the authority. It counts orders, and responds in place of the authority if a test has
// requested a fault.
type faults struct {
	next http.Handler

	mu    sync.Mutex
	taken taken
	fault *fault
}

// taken holds the number of orders, and the accounts.
type taken struct {
	// Orders has the number of orders by name. Replacing has the number of orders that name a certificate to replace.
	Orders    map[string]int `json:"orders"`
	Replacing map[string]int `json:"replacing"`
	// Accounts has the contacts of each account, such as "mailto:ops@example.com".
	Accounts [][]string `json:"accounts"`
}

// fault describes a response that replaces the response of the authority.
type fault struct {
	// Path is the part of the path for which the fault applies, such as "order". If it is empty, the fault applies to
	// every path.
	Path string `json:"path"`
	// Name restricts the fault to orders that contain this name. If it is empty, the fault applies to all orders.
	Name string `json:"name"`
	// Times is the number of times that the fault applies; 0 means until another fault is set.
	Times int `json:"times"`

	Status     int    `json:"status"`
	RetryAfter string `json:"retryAfter"`
	Type       string `json:"type"`
	Detail     string `json:"detail"`
	// Hold is a delay in milliseconds, after which the authority responds normally.
	Hold int `json:"hold"`
}

// Paths of the authority.
const (
	ordersPath   = "/order-plz"
	accountsPath = "/sign-me-up"
)

// ServeHTTP responds like the authority, or with a fault.
func (f *faults) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	var o order
	if r.URL.Path == ordersPath {
		o = read[order](body)
	}
	if fault := f.take(r, o.names()); fault != nil && fault.answer(w, r) {
		return
	}
	recorder := &recorder{ResponseWriter: w}
	f.next.ServeHTTP(recorder, r)
	if recorder.status == http.StatusCreated {
		f.count(r.URL.Path, o, body)
	}
}

func (f *faults) count(path string, o order, body []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case path == accountsPath:
		f.taken.Accounts = append(f.taken.Accounts, read[account](body).Contact)
	case o.Replaces != "":
		f.taken.Replacing[o.names()]++
		fallthrough
	case path == ordersPath:
		f.taken.Orders[o.names()]++
	}
}

// take returns the fault that applies to a request, or nil.
func (f *faults) take(r *http.Request, names string) *fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	found := f.fault
	if found == nil || !strings.Contains(r.URL.Path, found.Path) || found.Name != "" && names != found.Name {
		return nil
	}
	if found.Times--; found.Times == 0 {
		f.fault = nil
	}
	return found
}

// answer applies the fault. It returns false if the authority must respond after all.
func (f *fault) answer(w http.ResponseWriter, r *http.Request) bool {
	if f.Hold > 0 {
		select {
		case <-time.After(time.Duration(f.Hold) * time.Millisecond):
		case <-r.Context().Done():
		}
		return false
	}
	if f.RetryAfter != "" {
		w.Header().Set("Retry-After", f.RetryAfter)
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(f.Status)
	_ = json.NewEncoder(w).Encode(map[string]any{"type": f.Type, "detail": f.Detail, "status": f.Status})
	return true
}

// order is the request for an order.
type order struct {
	Identifiers []struct {
		Value string `json:"value"`
	} `json:"identifiers"`
	Replaces string `json:"replaces"`
}

func (o order) names() string {
	names := make([]string, 0, len(o.Identifiers))
	for _, i := range o.Identifiers {
		names = append(names, i.Value)
	}
	return strings.Join(names, ",")
}

// account is the request for an account.
type account struct {
	Contact []string `json:"contact"`
}

// read parses the payload of a request. It returns an empty payload if the body is invalid.
func read[T any](body []byte) (value T) {
	var signed struct {
		Payload string `json:"payload"`
	}
	if json.Unmarshal(body, &signed) != nil {
		return value
	}
	payload, err := base64.RawURLEncoding.DecodeString(signed.Payload)
	if err == nil {
		_ = json.Unmarshal(payload, &value)
	}
	return value
}

// recorder remembers the status of a response.
type recorder struct {
	http.ResponseWriter
	status int
}

// WriteHeader records the status and forwards it.
func (r *recorder) WriteHeader(status int) {
	r.status = status
	r.ResponseWriter.WriteHeader(status)
}

// controls returns the handler of the paths for tests. Other paths go to Pebble's own management interface.
func controls(f *faults, z *zone, management http.Handler) http.Handler {
	m := http.NewServeMux()
	m.HandleFunc("GET /taken", func(w http.ResponseWriter, _ *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		_ = json.NewEncoder(w).Encode(f.taken)
	})
	m.HandleFunc("PUT /fault", func(w http.ResponseWriter, r *http.Request) {
		var next fault
		if err := json.NewDecoder(r.Body).Decode(&next); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		f.fault = &next
	})
	m.HandleFunc("DELETE /fault", func(http.ResponseWriter, *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.fault = nil
	})
	m.HandleFunc("PUT /txt/{name}", z.add)
	m.HandleFunc("DELETE /txt/{name}", z.remove)
	m.Handle("/", management)
	return m
}
