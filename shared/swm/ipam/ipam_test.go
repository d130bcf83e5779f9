package ipam_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/storetest"
	"github.com/littoral-project/littoral/shared/swm/ipam"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// site is a database with ranges of addresses.
type site struct {
	*testing.T

	db     *store.DB
	ranges ipam.Ranges
}

func newSite(t *testing.T, ranges string) *site {
	t.Helper()
	s := &site{T: t, db: storetest.New(t)}
	require.NoError(t, s.ranges.UnmarshalText([]byte(ranges)))
	return s
}

func (s *site) tx(do func(ctx context.Context, tx *store.Tx) error) error {
	return s.db.Tx(store.WithSource(context.Background(), "/test"), do)
}

func (s *site) ask(name string, addresses int64) ipam.Status {
	s.Helper()
	require.NoError(s, s.tx(func(ctx context.Context, tx *store.Tx) error {
		return ipam.Reserve(ctx, tx, s.ranges, "plant", name, addresses)
	}))
	return s.of(name)
}

func (s *site) give(name string) {
	s.Helper()
	require.NoError(s, s.tx(func(ctx context.Context, tx *store.Tx) error {
		return ipam.Release(ctx, tx, s.ranges, "plant", name)
	}))
}

func (s *site) of(name string) ipam.Status {
	s.Helper()
	status, err := ipam.Of(s.Context(), s.db, "plant", name)
	require.NoError(s, err)
	return status
}

func TestAddressesAreGivenOut(t *testing.T) {
	t.Parallel()
	s := newSite(t, "10.20.0.0/28, 192.168.7.0/30")
	require.Equal(t, ipam.Status{Code: ipam.Reserved, IPv4CIDR: "192.168.7.0/30"}, s.ask("a", 3), "the large range stays whole")
	require.Equal(t, "10.20.0.0/29", s.ask("b", 5).IPv4CIDR)
	require.Equal(t, "10.20.0.8/32", s.ask("c", 1).IPv4CIDR)
	require.Equal(t, "10.20.0.0/29", s.ask("b", 8).IPv4CIDR, "it holds them already")
	require.Equal(t, "10.20.0.0/30", s.ask("b", 4).IPv4CIDR, "it keeps a part of what it has")
	require.Equal(t, "10.20.0.0/29", s.ask("b", 7).IPv4CIDR, "and has it within what it gets")

	require.Equal(t, ipam.Status{
		Code: ipam.Unfulfillable, Error: "it needs a /29; of the 20 addresses of the site 7 are free, and the largest prefix is 10.20.0.12/30",
	}, s.ask("d", 6))
	require.Equal(t, ipam.Status{
		Code: ipam.Unfulfillable, IPv4CIDR: "10.20.0.0/29",
		Error: "it needs a /27; of the 20 addresses of the site 7 are free, and the largest prefix is 10.20.0.12/30; it keeps what it has",
	}, s.ask("b", 20))
	s.give("c")
	require.Equal(t, "10.20.0.8/29", s.of("d").IPv4CIDR, "what is given back goes to who waits")
	require.Equal(t, ipam.Status{Code: ipam.Reserved, IPv4CIDR: "10.20.0.0/29"}, s.ask("b", 8), "it wants no more after all")
	s.give("a")
	require.Equal(t, "10.20.0.0/28", func() string { s.give("d"); return s.ask("b", 9).IPv4CIDR }())
	require.Equal(t, ipam.Unfulfillable, s.ask("e", ipam.Most).Code)
}

// TestWithoutRangesIpamsWait: they get addresses when there are some, and keep them when the ranges are others.
func TestWithoutRangesIpamsWait(t *testing.T) {
	t.Parallel()
	s := newSite(t, "")
	waits := s.ask("a", 4)
	require.Equal(t, ipam.Requested, waits.Code)
	require.Contains(t, waits.Error, "IPAM_RANGES")
	s.ranges = ipam.Ranges{netip.MustParsePrefix("10.0.0.0/24")}
	require.Equal(t, "10.0.0.0/30", s.ask("a", 4).IPv4CIDR)
	s.ranges = ipam.Ranges{netip.MustParsePrefix("10.1.0.0/24")}
	require.Equal(t, ipam.Status{Code: ipam.Reserved, IPv4CIDR: "10.0.0.0/30"}, s.ask("a", 4))
	require.Equal(t, "10.1.0.0/30", s.ask("b", 4).IPv4CIDR)
	require.Equal(t, "10.1.0.8/29", s.ask("a", 5).IPv4CIDR, "more of them are from where there are some")
	s.ranges = ipam.Ranges{netip.MustParsePrefix("0.0.0.0/0")}
	s.give("a")
	s.give("b")
	require.Equal(t, "0.0.0.0/0", s.ask("all", ipam.Most).IPv4CIDR)
}

// TestTwoNeverHaveAnAddressInCommon: however many ask at a time, all is given out, and each address once.
func TestTwoNeverHaveAnAddressInCommon(t *testing.T) {
	t.Parallel()
	s := newSite(t, "10.0.0.0/26")
	const at, each = 8, 5 // more than there is
	var all sync.WaitGroup
	failed := make(chan error, at*(each+1))
	for i := range at {
		all.Go(func() {
			for k := range each {
				name := fmt.Sprintf("%d-%d", i, k)
				failed <- s.tx(func(ctx context.Context, tx *store.Tx) error {
					return ipam.Reserve(ctx, tx, s.ranges, "plant", name, 2)
				})
				if k == 0 {
					failed <- s.tx(func(ctx context.Context, tx *store.Tx) error {
						return ipam.Release(ctx, tx, s.ranges, "plant", name)
					})
				}
			}
		})
	}
	all.Wait()
	for range at * (each + 1) {
		require.NoError(t, <-failed)
	}
	given := map[string]bool{}
	for i := range at {
		for k := 1; k < each; k++ {
			status := s.of(fmt.Sprintf("%d-%d", i, k))
			require.Equal(t, ipam.Reserved, status.Code, status.Error)
			require.False(t, given[status.IPv4CIDR], status.IPv4CIDR)
			given[status.IPv4CIDR] = true
		}
	}
	require.Len(t, given, 32, "all of it")
}

// TestAddressesAgainstAPlainList: whatever is asked for and given back, it is as a list of single addresses says.
func TestAddressesAgainstAPlainList(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			s := newSite(t, "10.0.0.0/26,10.0.0.64/29,10.1.0.16/28,10.2.0.0/32")
			r := rand.New(rand.NewPCG(seed, seed)) //nolint:gosec // to be repeated
			wants := map[string]int64{}
			for range 60 {
				name := fmt.Sprint("i", r.IntN(12))
				before := s.of(name)
				if r.IntN(3) == 0 {
					s.give(name)
					delete(wants, name)
				} else {
					n := int64(1) << r.IntN(7)
					n -= r.Int64N(n)
					after := s.ask(name, n)
					if n == wants[name] {
						require.Equal(t, before, after, "handed in again")
					}
					wants[name] = n
				}
				s.check(wants)
			}
		})
	}
}

// check compares what is given out with a list of single addresses.
func (s *site) check(wants map[string]int64) {
	s.Helper()
	owner := map[netip.Addr]string{} // empty: free
	for _, p := range s.ranges {
		for at := p.Addr(); p.Contains(at); at = at.Next() {
			owner[at] = ""
		}
	}
	for name, n := range wants {
		status := s.of(name)
		if status.IPv4CIDR == "" {
			continue
		}
		p := netip.MustParsePrefix(status.IPv4CIDR)
		if status.Code == ipam.Reserved {
			require.Equal(s, fits(n), p.Bits(), "the smallest that holds %d: %v", n, p)
		}
		for at := p.Addr(); p.Contains(at); at = at.Next() {
			of, known := owner[at]
			require.True(s, known, "%v of %s is in no range", at, name)
			require.Empty(s, of, "%v is given out twice", at)
			owner[at] = name
		}
	}
	free := 0
	for _, of := range owner {
		if of == "" {
			free++
		}
	}
	for name, n := range wants {
		status := s.of(name)
		if status.Code == ipam.Reserved {
			continue
		}
		require.Contains(s, status.Error, fmt.Sprintf("needs a /%d", fits(n)))
		for first := range owner { // nowhere is there room for it
			p := netip.PrefixFrom(first, fits(n))
			if p != p.Masked() || !slices.ContainsFunc(s.ranges, func(r netip.Prefix) bool { return r.Contains(first) && r.Bits() <= p.Bits() }) {
				continue
			}
			room := true
			for at := first; p.Contains(at); at = at.Next() {
				room = room && owner[at] == ""
			}
			require.False(s, room, "%s waits, and %v is free", name, p)
		}
	}
	if len(wants) > 0 {
		name := "z"
		require.Contains(s, s.ask(name, 128).Error, fmt.Sprintf(" %d are free", free))
		s.give(name)
	}
}

// fits is how long the smallest prefix is that holds so many addresses, as it is counted by hand.
func fits(n int64) int {
	length := 32
	for held := int64(1); held < n; held *= 2 {
		length--
	}
	return length
}

func TestRangesThatCannotBe(t *testing.T) {
	t.Parallel()
	for text, why := range map[string]string{
		"10.0.0.0":                             "no prefix",
		"10.0.0.0/33":                          "no prefix",
		"ten":                                  "no prefix",
		"10.0.0.0/8 10.0.0.0/9":                "no prefix",
		"fd00::/64":                            "none of IPv4",
		"::ffff:10.0.0.0/104":                  "none of IPv4",
		"10.0.0.5/24":                          "not the beginning of a prefix, which 10.0.0.0/24 is",
		"10.0.0.0/8,172.16.0.0/12,10.1.0.0/16": "10.0.0.0/8 and 10.1.0.0/16 overlap",
		"10.0.0.0/24,10.0.0.0/24":              "overlap",
	} {
		require.ErrorContains(t, new(ipam.Ranges).UnmarshalText([]byte(text)), why, text)
	}
	var r ipam.Ranges
	require.NoError(t, r.UnmarshalText([]byte(" 172.16.0.0/12 ,10.0.0.0/8")))
	require.Equal(t, ipam.Ranges{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("172.16.0.0/12")}, r)
}
