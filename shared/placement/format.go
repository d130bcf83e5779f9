package placement

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// sortedKeys returns the keys of m in order, so that nothing depends on the order of a map.
func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	if len(m) == 0 {
		return nil
	}
	return slices.Sorted(maps.Keys(m))
}

// place formats a target as orchestrator/cluster/node; an empty field reads "*".
func place(t Target) string {
	part := func(s string) string {
		if s == "" {
			return "*"
		}
		return s
	}
	return part(t.Orchestrator) + "/" + part(t.Cluster) + "/" + part(t.Node)
}

func places(ts []Target) string {
	out := make([]string, len(ts))
	for i, t := range ts {
		out[i] = place(t)
	}
	return orNone(strings.Join(out, ", "))
}

// cores formats millicores: 2500 is "2.5 cores".
func cores(milli int64) string {
	if milli == 1000 {
		return "1 core"
	}
	return CoreCount(milli) + " cores"
}

// CoreCount formats millicores as a number: 2500 is "2.5".
func CoreCount(milli int64) string {
	s := fmt.Sprintf("%d.%03d", milli/1000, milli%1000)
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}

var binaryUnits = []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}

// Size formats bytes exactly in the largest unit that divides them, else with two decimals in the largest below.
func Size(bytes int64) string {
	unit, v, rest := 0, bytes, false
	for v >= 1024 && unit < len(binaryUnits)-1 {
		rest = rest || v%1024 != 0
		v /= 1024
		unit++
	}
	if !rest {
		return fmt.Sprintf("%d %s", v, binaryUnits[unit])
	}
	return fmt.Sprintf("%.2f %s", float64(bytes)/float64(int64(1)<<(10*unit)), binaryUnits[unit])
}

// percent formats a fraction: 0.833 is "83.3 %".
func percent(f float64) string { return number(f*100) + " %" }

// number formats with at most one decimal.
func number(f float64) string {
	return strings.TrimSuffix(strconv.FormatFloat(f, 'f', 1, 64), ".0")
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

func plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + one + "s"
}

// counts formats rule counts, most frequent first: "cpu 3, freshness 1".
func counts(m map[Rule]int) string {
	rules := sortedKeys(m)
	slices.SortStableFunc(rules, func(a, b Rule) int { return m[b] - m[a] })
	out := make([]string, len(rules))
	for i, r := range rules {
		out[i] = fmt.Sprintf("%s %d", r, m[r])
	}
	return strings.Join(out, ", ")
}
