package topology

import (
	"encoding/json"
	"math"
	"reflect"
	"strconv"
	"strings"
)

// Measure is a measured number, or the knowledge that there is none. The zero Measure is unknown and, with the option
// omitzero, left out of JSON. It also reads text, since older aggregators wrote some numbers so, and "" as unknown.
type Measure struct {
	value float64
	known bool
}

// Known returns the measure v; a value that is not finite is unknown.
func Known(v float64) Measure {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return Measure{}
	}
	return Measure{value: v, known: true}
}

// Get returns the value and whether there is one.
func (m Measure) Get() (float64, bool) { return m.value, m.known }

// Or returns the value, or fallback when there is none.
func (m Measure) Or(fallback float64) float64 {
	if m.known {
		return m.value
	}
	return fallback
}

// IsZero reports whether the measure is unknown; encoding/json asks it for omitzero.
func (m Measure) IsZero() bool { return !m.known }

// MarshalJSON writes the number, null when unknown.
func (m Measure) MarshalJSON() ([]byte, error) {
	if !m.known {
		return []byte("null"), nil
	}
	return json.Marshal(m.value)
}

// UnmarshalJSON reads a number, a number as text, "" or null.
func (m *Measure) UnmarshalJSON(raw []byte) error {
	text := string(raw)
	if len(raw) > 0 && raw[0] == '"' {
		if err := json.Unmarshal(raw, &text); err != nil {
			return err
		}
		text = strings.TrimSpace(text)
	}
	if text == "" || text == "null" {
		*m = Measure{}
		return nil
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		// encoding/json adds the path to an error of this type, to no other.
		return &json.UnmarshalTypeError{Value: kindOf(raw), Type: reflect.TypeFor[float64]()}
	}
	*m = Measure{value: v, known: true}
	return nil
}

// kindOf names the JSON type of a value as encoding/json does.
func kindOf(raw []byte) string {
	switch raw[0] {
	case '"':
		return "string"
	case '{':
		return "object"
	case '[':
		return "array"
	case 't', 'f':
		return "bool"
	}
	return "number"
}
