// Package balancer chooses an endpoint of a backend for each request. It also tracks the latency and the failures of
// endpoints.
//
// The statistics of an endpoint belong to its address. They are kept when the list of endpoints or the policy changes.
// Choosing an endpoint usually takes no lock: it reads an immutable state and some atomic counters. Only Service
// session affinity and trial requests to ejected endpoints take locks.
package balancer
