package main

import (
	"fmt"

	"github.com/vishvananda/netlink"
)

// block is the network that is reserved for measurements. An EndpointSlice must not contain loopback addresses, and
// each endpoint should have its own address, like pods.
const block = "198.18.0.1/15"

// addresses is the number of addresses in the block that are used for endpoints.
const addresses = 2 * perHalf

const perHalf, perThird = 250 * 250, 250

// addressOf returns an address of the block. Addresses are counted from 0.
func addressOf(i int) string {
	return fmt.Sprintf("198.%d.%d.%d", 18+i/perHalf, i%perHalf/perThird, i%perThird+1)
}

// ownBlock makes all addresses of the block local. The whole network of an address of the loopback device is local.
func ownBlock() error {
	loopback, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	address, err := netlink.ParseAddr(block)
	if err != nil {
		return err
	}
	return netlink.AddrAdd(loopback, address)
}
