// Package decode reads JSON as the API does: every value that does not fit is named by its path, not the first alone.
package decode

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/problem"
)

// Limits on the number of values in a body. A value of two letters may take a hundred bytes or more once decoded, so a
// body within MaxBody may still be too large for a function's memory.
const (
	maxValues = 100_000
	valueSize = 20 // a larger body needs that many bytes per value; alerts have more
)

// JSON decodes the body, one JSON value, into v. Unreadable JSON is Malformed. Values that do not fit v, or that its own
// UnmarshalJSON or UnmarshalText refuses, are Invalid: all are listed, each with its path. More values than a function
// has memory for are TooLarge.
func JSON(body []byte, v any) error {
	if most := max(maxValues, len(body)/valueSize); values(body) > most {
		return problem.New(problem.TooLarge, "the body has more than %d values", most)
	}
	err := json.Unmarshal(body, v)
	if err == nil {
		return nil
	}
	if !json.Valid(body) {
		return problem.Wrap(problem.Malformed, err, "the body is not valid JSON: %v", err)
	}
	// encoding/json stops at the first fault; the second look finds every one.
	var faults problem.Faults
	misfits(body, reflect.TypeOf(v).Elem(), "", &faults)
	if faults.Empty() { // it refuses the whole, not a value in it
		faults.Add("", 0, "%v", err)
	}
	return faults.Err("the body does not have the form that is expected")
}

// values estimates the number of values in JSON: one for each comma, list and object.
func values(body []byte) int {
	n, text := 1, false
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case c == '"':
			text = !text
		case text && c == '\\':
			i++
		case !text && (c == ',' || c == '[' || c == '{'):
			n++
		}
	}
	return n
}

// misfits adds a fault for each value in raw that does not fit type t.
func misfits(raw json.RawMessage, t reflect.Type, path string, faults *problem.Faults) {
	if isNull(raw) {
		return
	}
	pointer := reflect.PointerTo(t)
	if pointer.Implements(reflect.TypeFor[json.Unmarshaler]()) ||
		pointer.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		misfit(raw, t, path, faults)
		return
	}
	switch t.Kind() { // the rest are single values
	case reflect.Pointer:
		misfits(raw, t.Elem(), path, faults)
	case reflect.Struct:
		var members map[string]json.RawMessage
		if json.Unmarshal(raw, &members) != nil {
			misfit(raw, t, path, faults)
			return
		}
		fields := fieldsOf(t)
		for _, name := range sortedKeys(members) {
			if f := fieldOf(fields, name); f != nil {
				misfits(members[name], f.typ, join(path, name), faults)
			}
		}
	case reflect.Slice, reflect.Array:
		var entries []json.RawMessage
		if json.Unmarshal(raw, &entries) != nil {
			misfit(raw, t, path, faults)
			return
		}
		for i, entry := range entries {
			misfits(entry, t.Elem(), fmt.Sprintf("%s[%d]", path, i), faults)
		}
	case reflect.Map:
		var members map[string]json.RawMessage
		if json.Unmarshal(raw, &members) != nil {
			misfit(raw, t, path, faults)
			return
		}
		for _, name := range sortedKeys(members) {
			misfits(members[name], t.Elem(), join(path, name), faults)
		}
	default:
		misfit(raw, t, path, faults)
	}
}

// misfit adds the fault, if any, of a value that is decoded as a whole. A decoder of its own begins its paths with a
// name of its own for the value, which is replaced by path.
func misfit(raw json.RawMessage, t reflect.Type, path string, faults *problem.Faults) {
	err := json.Unmarshal(raw, reflect.New(t).Interface())
	var typ *json.UnmarshalTypeError
	var known *problem.Error
	switch {
	case err == nil:
	case errors.As(err, &known) && len(known.Fields) > 0:
		for _, f := range known.Fields {
			_, below, _ := strings.Cut(f.Path, ".")
			faults.Add(join(path, below), f.Line, "%s", f.Detail)
		}
	case errors.As(err, &typ) && tooLarge(typ):
		faults.Add(join(path, typ.Field), 0, "%s is too large", strings.TrimPrefix(typ.Value, "number "))
	case t == reflect.TypeFor[time.Time]():
		faults.Add(path, 0, `is not a time such as "2026-01-31T12:00:00Z"`)
	case errors.As(err, &typ):
		faults.Add(join(path, typ.Field), 0, "is a JSON %s, want %s", typ.Value, jsonName(typ.Type))
	case t == reflect.TypeFor[uuid.UUID]():
		faults.Add(path, 0, "is not a UUID")
	default:
		faults.Add(path, 0, "%v", err)
	}
}

// tooLarge reports whether the value is a number that is only too large for its field.
func tooLarge(e *json.UnmarshalTypeError) bool {
	return strings.HasPrefix(e.Value, "number ") && e.Type.Kind() == reflect.Float64
}

// jsonName describes a type in the words of JSON.
func jsonName(t reflect.Type) string {
	if t.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		return "a string"
	}
	switch t.Kind() { // the rest does not stand in a body
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "a whole number"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Slice:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "an object"
	}
	return t.String()
}

// jsonField is a struct field under its JSON name.
type jsonField struct {
	name string
	typ  reflect.Type
}

// fieldsOf lists the fields of a struct, including those of embedded structs.
func fieldsOf(t reflect.Type) []jsonField {
	var list []jsonField
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct:
			list = append(list, fieldsOf(f.Type)...)
		case name != "-" && f.IsExported():
			if name == "" {
				name = f.Name
			}
			list = append(list, jsonField{name, f.Type})
		}
	}
	return list
}

// fieldOf finds the field as encoding/json does: by exact name, else ignoring case.
func fieldOf(fields []jsonField, name string) *jsonField {
	at := slices.IndexFunc(fields, func(f jsonField) bool { return f.name == name })
	if at < 0 {
		at = slices.IndexFunc(fields, func(f jsonField) bool { return strings.EqualFold(f.name, name) })
	}
	if at < 0 {
		return nil
	}
	return &fields[at]
}

func sortedKeys(m map[string]json.RawMessage) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func join(path, name string) string {
	if path == "" || name == "" {
		return path + name
	}
	return path + "." + name
}

func isNull(raw json.RawMessage) bool { return strings.TrimSpace(string(raw)) == "null" }
