package solver

// dice makes pseudo-random numbers (Marsaglia, Xorshift RNGs, 2003); it must not begin with 0.
type dice uint64

// seed is the one that all searches begin with, so equal problems are searched alike.
const seed = 0x9E3779B97F4A7C15

func (d *dice) next() uint64 {
	*d ^= *d << 13
	*d ^= *d >> 7
	*d ^= *d << 17
	return uint64(*d)
}

// below returns a number from 0 to n-1.
func (d *dice) below(n int) int { return int((d.next() >> 33) % uint64(n)) }

func (d *dice) part() float64 { return float64(d.next()>>11) / (1 << 53) }
