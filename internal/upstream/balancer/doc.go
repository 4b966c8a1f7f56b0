// Package balancer chooses an endpoint of a backend for each request. It also tracks the latency and the failures of
// endpoints.
//
// The statistics of an endpoint belong to its address. They are kept when the list of endpoints or the policy changes.
// The function that chooses an endpoint usually takes no lock: it reads an immutable state and some atomic counters. It
// takes a lock only for the session affinity of a Service, and for trial requests to ejected endpoints.
package balancer
