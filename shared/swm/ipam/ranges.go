package ipam

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"net/netip"
	"slices"
	"strings"
)

// Ranges are the prefixes of IPv4 that a site gives addresses out of.
type Ranges []netip.Prefix

// UnmarshalText reads a setting: prefixes with commas between them.
func (r *Ranges) UnmarshalText(text []byte) error {
	*r = nil
	for part := range strings.SplitSeq(string(text), ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		p, err := netip.ParsePrefix(part)
		switch {
		case err != nil:
			return fmt.Errorf("%q is no prefix, as 10.20.0.0/16 is", part)
		case !p.Addr().Is4():
			return fmt.Errorf("%s is none of IPv4", p)
		case p != p.Masked():
			return fmt.Errorf("%s is not the beginning of a prefix, which %s is", p, p.Masked())
		}
		if i := slices.IndexFunc(*r, p.Overlaps); i >= 0 {
			return fmt.Errorf("%s and %s overlap", (*r)[i], p)
		}
		*r = append(*r, p)
	}
	slices.SortFunc(*r, func(a, b netip.Prefix) int { return a.Addr().Compare(b.Addr()) })
	return nil
}

// length is that of the smallest prefix which holds so many addresses. All of a prefix count, its first and its last too: what they
// are used for is for whoever has asked for them.
func length(addresses int64) int { return 32 - bits.Len64(uint64(addresses-1)) } //nolint:gosec // it is at least 1

// size is how many addresses a prefix has.
func size(p netip.Prefix) int64 { return 1 << (32 - p.Bits()) }

// place returns a prefix of this length that is not taken, for one that has a prefix already, or the zero Prefix. taken includes what it
// has. Where it can be it is a part of that, or has it within, so that addresses which are in use stay.
func (r Ranges) place(taken []netip.Prefix, has netip.Prefix, length int) netip.Prefix {
	if has.IsValid() {
		if length >= has.Bits() {
			return netip.PrefixFrom(has.Addr(), length)
		}
		wider := netip.PrefixFrom(has.Addr(), length).Masked()
		others := func(p netip.Prefix) bool { return p != has && p.Overlaps(wider) }
		within := func(p netip.Prefix) bool { return p.Bits() <= length && p.Contains(wider.Addr()) }
		if slices.ContainsFunc(r, within) && !slices.ContainsFunc(taken, others) {
			return wider
		}
	}
	var best netip.Prefix // the smallest that is large enough, so that large ones stay whole
	for _, p := range r.free(taken) {
		if p.Bits() <= length && (!best.IsValid() || p.Bits() > best.Bits()) {
			best = p
		}
	}
	if !best.IsValid() {
		return best
	}
	return netip.PrefixFrom(best.Addr(), length)
}

// free returns the largest prefixes of which nothing is taken, in the order of their addresses.
func (r Ranges) free(taken []netip.Prefix) (all []netip.Prefix) {
	for _, p := range r {
		all = append(all, free(p, taken)...)
	}
	return all
}

func free(p netip.Prefix, taken []netip.Prefix) []netip.Prefix {
	var within []netip.Prefix
	for _, t := range taken {
		if t.Overlaps(p) {
			if t.Bits() <= p.Bits() {
				return nil
			}
			within = append(within, t)
		}
	}
	if len(within) == 0 {
		return []netip.Prefix{p}
	}
	first := p.Addr().As4()
	var second [4]byte
	binary.BigEndian.PutUint32(second[:], binary.BigEndian.Uint32(first[:])+1<<(31-p.Bits()))
	return append(
		free(netip.PrefixFrom(p.Addr(), p.Bits()+1), within),
		free(netip.PrefixFrom(netip.AddrFrom4(second), p.Bits()+1), within)...,
	)
}

// left says why no prefix of this length was found.
func (r Ranges) left(taken []netip.Prefix, length int) string {
	var all, left int64
	for _, p := range r {
		all += size(p)
	}
	var largest netip.Prefix
	for _, p := range r.free(taken) {
		left += size(p)
		if !largest.IsValid() || p.Bits() < largest.Bits() {
			largest = p
		}
	}
	why := fmt.Sprintf("it needs a /%d; of the %d addresses of the site %d are free", length, all, left)
	if largest.IsValid() {
		why += fmt.Sprintf(", and the largest prefix is %s", largest)
	}
	return why
}
