// Package balancer chooses one endpoint of a backend for each request, and tracks the latency and the failures of
// endpoints.
//
// The statistics of an endpoint belong to its address and are kept when the list or the policy changes. Choosing an
// endpoint usually takes no lock: it reads an immutable state and some atomic counters. Service session affinity and
// trials of ejected endpoints do take locks.
package balancer
