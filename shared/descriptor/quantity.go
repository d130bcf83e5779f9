package descriptor

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"
)

// The largest amounts that are believed.
const (
	maxCPUMilli = 1_000_000_000 // a million cores
	maxAmount   = 1 << 60       // an exbibyte
	maxTimeout  = 366 * 24 * time.Hour
)

// decimal and binary are the suffixes of a Kubernetes quantity.
var (
	decimal = map[string]int{"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
	binary  = map[string]uint{"ki": 10, "mi": 20, "gi": 30, "ti": 40, "pi": 50, "ei": 60}
	// inBytes are spellings that say "bytes": 200MB, and 200Mb, which is never meant as bits here.
	inBytes = map[string]int{"b": 0, "kb": 3, "mb": 6, "gb": 9, "tb": 12, "pb": 15, "eb": 18}
)

// parseCPU returns thousandths of a core, rounded up: 2, 0.5, 500m.
func parseCPU(text string) (int64, error) {
	value, err := parseQuantity(text, false)
	if err != nil {
		return 0, err
	}
	milli, ok := ceil(value.Mul(value, big.NewRat(1000, 1)))
	if !ok || milli > maxCPUMilli {
		return 0, fmt.Errorf("%q is more than a million cores", shorten(text))
	}
	return milli, nil
}

// parseAmount returns bytes, or whole units of another resource, rounded up: 200Mi, 1e9, 128974848000m, 200MB, 200Mb.
func parseAmount(text string) (int64, error) {
	value, err := parseQuantity(text, true)
	if err != nil {
		return 0, err
	}
	if strings.HasSuffix(strings.TrimSpace(text), "m") && value.Sign() > 0 && value.Cmp(big.NewRat(1, 1)) < 0 {
		return 0, fmt.Errorf("%q is less than one: m stands for thousandths, M for millions", shorten(text))
	}
	amount, ok := ceil(value)
	if !ok || amount > maxAmount {
		return 0, fmt.Errorf("%q is more than an exbibyte", shorten(text))
	}
	return amount, nil
}

// parseQuantity returns the exact value of a number with a suffix. It refuses negative ones.
func parseQuantity(text string, asBytes bool) (*big.Rat, error) {
	text = strings.TrimSpace(text)
	number, suffix := split(text)
	wrong := fmt.Errorf("%q is not a quantity such as 2, 0.5, 500m or 200Mi", shorten(text))
	if len(text) > 64 || !isNumber(number) {
		return nil, wrong
	}
	value, ok := new(big.Rat).SetString(number)
	if !ok {
		return nil, wrong
	}
	if value.Sign() < 0 {
		return nil, fmt.Errorf("%q is negative", text)
	}
	suffix = strings.TrimLeft(suffix, " ")
	lower := strings.ToLower(suffix)
	if exponent, ok := decimal[suffix]; ok {
		return value.Mul(value, power(exponent)), nil
	}
	if exponent, ok := inBytes[lower]; ok && asBytes {
		return value.Mul(value, power(exponent)), nil
	}
	if bits, ok := binary[strings.TrimSuffix(lower, "b")]; ok && (asBytes || lower[len(lower)-1] == 'i') {
		return value.Mul(value, new(big.Rat).SetInt(new(big.Int).Lsh(big.NewInt(1), bits))), nil
	}
	if exponent, err := strconv.Atoi(strings.TrimPrefix(lower, "e")); err == nil && lower[0] == 'e' {
		if exponent < -30 || exponent > 30 {
			return nil, fmt.Errorf("the exponent of %q is out of reach", text)
		}
		return value.Mul(value, power(exponent)), nil
	}
	return nil, fmt.Errorf("%q has the unknown unit %q", text, suffix)
}

// asKubernetes returns a quantity as a cluster reads it: as written, or without a "b" that means bytes and with the
// letters in their case. It is "" for anything else.
func asKubernetes(text string) string {
	text = strings.TrimSpace(text)
	number, suffix := split(text)
	if !isNumber(number) {
		return ""
	}
	if _, ok := decimal[suffix]; ok {
		return text
	}
	suffix = strings.TrimLeft(suffix, " ")
	lower := strings.ToLower(suffix)
	if exponent, err := strconv.Atoi(strings.TrimPrefix(lower, "e")); err == nil && lower[0] == 'e' && exponent > -30 && exponent < 30 {
		return text
	}
	if prefix, ok := strings.CutSuffix(lower, "b"); ok || strings.HasSuffix(lower, "i") {
		lower = prefix
	}
	if _, ok := binary[lower]; ok {
		return number + strings.ToUpper(lower[:1]) + "i"
	}
	if _, ok := inBytes[lower+"b"]; !ok {
		return ""
	}
	if lower == "k" {
		return number + lower
	}
	return number + strings.ToUpper(lower)
}

// split cuts a quantity behind its number.
func split(text string) (number, suffix string) {
	i := strings.IndexFunc(text, func(r rune) bool { return !strings.ContainsRune("+-.0123456789", r) })
	if i < 0 {
		return text, ""
	}
	return text[:i], text[i:]
}

// isNumber reports whether text is digits with at most one sign in front and one point among them.
func isNumber(text string) bool {
	if text != "" && (text[0] == '+' || text[0] == '-') {
		text = text[1:]
	}
	whole, fraction, _ := strings.Cut(text, ".")
	return whole+fraction != "" && strings.Trim(whole, "0123456789") == "" && strings.Trim(fraction, "0123456789") == ""
}

func power(exponent int) *big.Rat {
	n := exponent
	if n < 0 {
		n = -n
	}
	r := new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil))
	if exponent < 0 {
		r.Inv(r)
	}
	return r
}

func ceil(value *big.Rat) (int64, bool) {
	n, rest := new(big.Int).QuoRem(value.Num(), value.Denom(), new(big.Int))
	if rest.Sign() > 0 {
		n.Add(n, big.NewInt(1))
	}
	return n.Int64(), n.IsInt64()
}

// finite returns a decimal number; infinities, NaN and hexadecimal are none.
func finite(text string) (float64, bool) {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsInf(f, 0) || math.IsNaN(f) || strings.ContainsAny(text, "xXpP_") {
		return 0, false
	}
	return f, true
}

var units = map[string]time.Duration{
	"ms": time.Millisecond, "s": time.Second, "m": time.Minute, "h": time.Hour,
	"d": 24 * time.Hour, "w": 7 * 24 * time.Hour,
}

// parseDuration reads the durations Prometheus and Go have in common, days and weeks too: 15m, 1h30m, 1d.
func parseDuration(text string) (time.Duration, error) {
	wrong := fmt.Errorf("%q is not a duration such as 30s, 15m or 1h30m", shorten(text))
	rest := strings.TrimSpace(text)
	if rest == "" || len(rest) > 32 {
		return 0, wrong
	}
	var total float64
	for rest != "" {
		i := strings.IndexFunc(rest, func(r rune) bool { return r != '.' && (r < '0' || r > '9') })
		if i <= 0 {
			return 0, wrong
		}
		number, ok := finite(rest[:i])
		rest = rest[i:]
		i = strings.IndexFunc(rest, func(r rune) bool { return r == '.' || (r >= '0' && r <= '9') })
		if i < 0 {
			i = len(rest)
		}
		unit, known := units[rest[:i]]
		if !ok || !known {
			return 0, wrong
		}
		total += number * float64(unit)
		rest = rest[i:]
	}
	if total > float64(maxTimeout) {
		return 0, errors.New("is longer than a year")
	}
	return time.Duration(total), nil
}
