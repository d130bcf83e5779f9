package alto

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// Matrix has the costs between rows and columns; what is not defined is left out.
type Matrix struct {
	Sources []string
	Targets []string
	// Cost returns the cost in the type of that number, and whether it is defined.
	Cost func(kind, source, target int) (float64, bool)
	// Passes reports whether a pair is shown; nil: all are.
	Passes func(source, target int) bool
	// Intervals are those of a calendar; costs of the types that are calendared are arrays of so many.
	Intervals  int
	Calendared func(kind int) bool
	Foreseen   func(kind, interval, source, target int) (float64, bool)
}

// AppendCosts writes a document with the costs under a name, "cost-map" or "endpoint-cost-map". With several types each cost
// is an array, in which one that is not defined is null.
func AppendCosts(b []byte, name string, meta Meta, m Matrix) ([]byte, error) {
	head, err := json.Marshal(meta)
	if err != nil {
		return b, fmt.Errorf("encode the meta data: %w", err)
	}
	b = append(append(b, `{"meta":`...), head...)
	b = append(append(append(b, `,"`...), name...), `":{`...)
	keys := make([][]byte, len(m.Targets))
	for i, t := range m.Targets {
		if keys[i], err = json.Marshal(t); err != nil {
			return b, fmt.Errorf("encode a name: %w", err)
		}
		keys[i] = append(keys[i], ':')
	}
	kinds := len(meta.MultiCostTypes)
	for s, source := range m.Sources {
		key, err := json.Marshal(source)
		if err != nil {
			return b, fmt.Errorf("encode a name: %w", err)
		}
		if s > 0 {
			b = append(b, ',')
		}
		b = append(append(b, key...), `:{`...)
		first := true
		for t := range m.Targets {
			if m.Passes != nil && !m.Passes(s, t) {
				continue
			}
			mark := len(b)
			if !first {
				b = append(b, ',')
			}
			b = append(b, keys[t]...)
			var any bool
			if b, any = m.appendCost(b, kinds, s, t); !any {
				b = b[:mark]
				continue
			}
			first = false
		}
		b = append(b, '}')
	}
	return append(b, "}}"...), nil
}

// appendCost writes the costs of a pair; any is false when none is defined.
func (m Matrix) appendCost(b []byte, kinds, s, t int) (out []byte, any bool) {
	if kinds == 0 {
		return m.appendKind(b, 0, s, t)
	}
	b = append(b, '[')
	for k := range kinds {
		if k > 0 {
			b = append(b, ',')
		}
		var known bool
		b, known = m.appendKind(b, k, s, t)
		any = any || known
	}
	return append(b, ']'), any
}

// appendKind writes one cost, or its calendar. What is not defined is null.
func (m Matrix) appendKind(b []byte, kind, s, t int) (out []byte, any bool) {
	if m.Intervals == 0 || !m.Calendared(kind) {
		return appendKnown(b, func() (float64, bool) { return m.Cost(kind, s, t) })
	}
	b = append(b, '[')
	for i := range m.Intervals {
		if i > 0 {
			b = append(b, ',')
		}
		var known bool
		b, known = appendKnown(b, func() (float64, bool) { return m.Foreseen(kind, i, s, t) })
		any = any || known
	}
	return append(b, ']'), any
}

func appendKnown(b []byte, cost func() (float64, bool)) ([]byte, bool) {
	v, known := cost()
	if !known {
		return append(b, "null"...), false
	}
	return appendNumber(b, v), true
}

// appendNumber writes a cost with six significant digits, which is more than any measure has.
func appendNumber(b []byte, v float64) []byte {
	if whole := int64(v); float64(whole) == v {
		return strconv.AppendInt(b, whole, 10)
	}
	return strconv.AppendFloat(b, v, 'g', 6, 64)
}
