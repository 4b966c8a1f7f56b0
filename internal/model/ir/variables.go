package ir

import "net/netip"

// Variable is a variable that the administrator defines with nginx's directives map, geo and split_clients. All
// templates may contain it. Exactly one of Map, Geo and Split is set.
type Variable struct {
	// Name is the name of the variable, without the dollar sign.
	Name  string        `json:"name"`
	Map   *Map          `json:"map,omitempty"`
	Geo   *Geo          `json:"geo,omitempty"`
	Split *SplitClients `json:"split_clients,omitempty"`
}

// Map derives the value of a variable from a text.
type Map struct {
	// Source is the template of the text.
	Source string `json:"source"`
	// Default is the template of the value if nothing else matches.
	Default string `json:"default,omitempty"`
	// Exact maps texts, without regard to the case of ASCII letters, to templates of values. With Hostnames, a text may
	// be a mask: "*.example.com", ".example.com" for the name itself and the names below it, or "www.example.*".
	Exact     map[string]string `json:"exact,omitempty"`
	Hostnames bool              `json:"hostnames,omitempty"`
	// Patterns are tried in their order if Exact does not contain the text. They are not tried for the empty text.
	Patterns []MapPattern `json:"patterns,omitempty"`
	// Volatile computes the value each time that it is used. Otherwise it is computed once for a request.
	Volatile bool `json:"volatile,omitempty"`
}

// MapPattern is a regular expression with the value for the texts that it matches.
type MapPattern struct {
	// Pattern is an RE2 regular expression, which may match any part of the text. Fold ignores case.
	Pattern string `json:"pattern"`
	Fold    bool   `json:"fold,omitempty"`
	// Value is a template, which may also contain the capture groups of the expression: $1 to $9, and named groups.
	Value string `json:"value,omitempty"`
}

// Geo derives the value of a variable from an IP address.
type Geo struct {
	// Address is the template of the address. Empty means the address of the client.
	Address string `json:"address,omitempty"`
	// Default is the value for addresses that are in no range, and for texts that are not an address.
	Default string `json:"default,omitempty"`
	// Ranges are ranges of addresses with their values. The smallest range that contains an address counts. Ranges
	// may contain each other, but not overlap otherwise.
	Ranges []GeoRange `json:"ranges,omitempty"`
}

// GeoRange is a range of IP addresses.
type GeoRange struct {
	First netip.Addr `json:"first"`
	Last  netip.Addr `json:"last"`
	Value string     `json:"value,omitempty"`
}

// SplitClients derives the value of a variable from the hash of a text, so that each value gets a share of all texts.
// The hash is nginx's, so a text keeps its value if clients move from nginx.
type SplitClients struct {
	// Key is the template of the text.
	Key   string      `json:"key"`
	Parts []SplitPart `json:"parts,omitempty"`
}

// SplitPart is a share of the texts.
type SplitPart struct {
	// Share is the share in hundredths of a percent. 0 means all texts that remain.
	Share int    `json:"share,omitempty"`
	Value string `json:"value,omitempty"`
}
