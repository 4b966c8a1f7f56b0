// Package systems checks that the binary can be built for the other operating systems. It contains only tests.
package systems
