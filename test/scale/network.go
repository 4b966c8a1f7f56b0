package main

import (
	"fmt"

	"github.com/vishvananda/netlink"
)

// block is the network for measurements that the Internet keeps free. No EndpointSlice may have a loopback address, and
// every endpoint is to have one of its own, as pods have.
const block = "198.18.0.1/15"

// addresses is how many of the block's are used as endpoints.
const addresses = 2 * perHalf

const perHalf, perThird = 250 * 250, 250

// addressOf returns an address of the block, counted from 0.
func addressOf(i int) string {
	return fmt.Sprintf("198.%d.%d.%d", 18+i/perHalf, i%perHalf/perThird, i%perThird+1)
}

// ownBlock makes all addresses of the block this machine's: the network that a loopback device has an address of is
// local as a whole.
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
