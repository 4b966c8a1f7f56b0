// Package balancer chooses one endpoint of a backend for each request, and remembers how the endpoints do.
package balancer
