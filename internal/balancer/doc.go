// Package balancer chooses one endpoint of a backend for each request, and remembers how the endpoints do.
//
// What is known of an endpoint belongs to its address, and outlives every change of the list and of the policy. A choice
// takes no lock, but for the clients of Service session affinity; it reads one immutable state and a few counters.
package balancer
