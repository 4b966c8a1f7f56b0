package variables

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
	"github.com/k8singress/k8singress/internal/model/pattern"
)

// split is a compiled ir.SplitClients.
type split []part

// part has the texts whose hash is less than below, and which no earlier part has.
type part struct {
	below uint64
	value *nginx.Template
}

const wholeShare = 10_000

var errShares = errors.New("the shares are more than 100% together")

func newSplit(of *ir.SplitClients) (func(string, *pattern.Budget) found, error) {
	var s split
	sum, below := 0, uint64(0)
	for _, p := range of.Parts {
		if p.Share < 0 || p.Share > wholeShare {
			return nil, errShares
		}
		end := uint64(math.MaxUint32 + 1)
		if sum += p.Share; p.Share == 0 {
			sum = wholeShare
		} else {
			// nginx rounds each share, too.
			below += uint64(p.Share) * math.MaxUint32 / wholeShare
			end = below
		}
		if sum > wholeShare {
			return nil, errShares
		}
		s = append(s, part{end, literal(p.Value)})
	}
	return s.find, nil
}

func (s split) find(text string, _ *pattern.Budget) found {
	h := uint64(murmur2(text))
	for i := range s {
		if h < s[i].below {
			return found{value: s[i].value}
		}
	}
	return found{}
}

// murmur2 returns the hash MurmurHash2 of a text, with the seed 0, as nginx computes it.
func murmur2(text string) uint32 {
	const m, shift = 0x5bd1e995, 24
	h, data := uint32(len(text)), []byte(text)
	for ; len(data) >= 4; data = data[4:] {
		k := binary.LittleEndian.Uint32(data) * m
		k ^= k >> shift
		h = h*m ^ k*m
	}
	if len(data) > 0 {
		for i, c := range data {
			h ^= uint32(c) << (8 * i)
		}
		h *= m
	}
	h ^= h >> 13
	h *= m
	return h ^ h>>15
}
