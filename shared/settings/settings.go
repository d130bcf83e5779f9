// Package settings fills structs from named values: the environment of a process, or whatever stands for it.
//
// A field says its name, and perhaps a default, in tags: `envconfig:"STALE_AFTER" default:"60s"`. A value that is set to ""
// is set. Nobody here reads the process environment by itself, so that several hosts can live in one process.
package settings

import (
	"encoding"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// Lookup finds the value of a name, as os.LookupEnv does.
type Lookup func(name string) (value string, set bool)

// Map looks values up in a map.
func Map(values map[string]string) Lookup {
	return func(name string) (string, bool) {
		value, set := values[name]
		return value, set
	}
}

// Or returns one that asks further where l has no value. A nil one has none.
func (l Lookup) Or(further Lookup) Lookup {
	return func(name string) (string, bool) {
		for _, one := range []Lookup{l, further} {
			if one == nil {
				continue
			}
			if value, set := one(name); set {
				return value, true
			}
		}
		return "", false
	}
}

// Get returns the value of a name, or "".
func (l Lookup) Get(name string) string {
	value, _ := l.Or(nil)(name)
	return value
}

// Read fills the tagged fields of the struct that into points to, those of its embedded and nested structs too: with the
// value of PREFIX_NAME, else of NAME, else with the default. It returns all faults at once.
func Read(lookup Lookup, prefix string, into any) error {
	v := reflect.ValueOf(into)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return fmt.Errorf("settings go into a struct, not into a %T", into)
	}
	var faults []string
	if prefix != "" {
		prefix = strings.ToUpper(prefix) + "_"
	}
	read(lookup.Or(nil), prefix, v.Elem(), &faults)
	if len(faults) > 0 {
		return fmt.Errorf("%s", strings.Join(faults, "; "))
	}
	return nil
}

func read(lookup Lookup, prefix string, v reflect.Value, faults *[]string) {
	for i := range v.NumField() {
		field, about := v.Field(i), v.Type().Field(i)
		name := about.Tag.Get("envconfig")
		if name == "" {
			if field.Kind() == reflect.Struct && (field.CanSet() || about.Anonymous) {
				read(lookup, prefix, field, faults)
			}
			continue
		}
		text, set := lookup(prefix + name)
		if !set && prefix != "" {
			text, set = lookup(name)
		}
		if !set {
			text, set = about.Tag.Lookup("default")
		}
		switch {
		case !set && about.Tag.Get("required") == "true":
			*faults = append(*faults, name+" is not set")
		case set:
			if err := parse(text, field); err != nil {
				*faults = append(*faults, fmt.Sprintf("%s %q: %v", name, text, err))
			}
		}
	}
}

var duration = reflect.TypeFor[time.Duration]()

func parse(text string, into reflect.Value) error {
	if own, ok := into.Addr().Interface().(encoding.TextUnmarshaler); ok {
		return own.UnmarshalText([]byte(text))
	}
	if into.Type() == duration {
		d, err := time.ParseDuration(text)
		into.SetInt(int64(d))
		return err
	}
	switch into.Kind() {
	case reflect.String:
		into.SetString(text)
	case reflect.Bool:
		yes, err := strconv.ParseBool(text)
		into.SetBool(yes)
		return err
	case reflect.Int, reflect.Int32, reflect.Int64:
		n, err := strconv.ParseInt(text, 0, into.Type().Bits())
		into.SetInt(n)
		return err
	case reflect.Float64:
		n, err := strconv.ParseFloat(text, 64)
		into.SetFloat(n)
		return err
	case reflect.Slice: // a,b
		list := reflect.MakeSlice(into.Type(), 0, 0)
		if strings.TrimSpace(text) != "" {
			for part := range strings.SplitSeq(text, ",") {
				one := reflect.New(into.Type().Elem()).Elem()
				if err := parse(part, one); err != nil {
					return err
				}
				list = reflect.Append(list, one)
			}
		}
		into.Set(list)
	case reflect.Map: // key:value,key:value
		pairs := reflect.MakeMap(into.Type())
		if strings.TrimSpace(text) != "" {
			for part := range strings.SplitSeq(text, ",") {
				key, value, ok := strings.Cut(part, ":")
				if !ok {
					return fmt.Errorf("%q is not key:value", part)
				}
				one := reflect.New(into.Type().Elem()).Elem()
				if err := parse(value, one); err != nil {
					return err
				}
				pairs.SetMapIndex(reflect.ValueOf(key), one)
			}
		}
		into.Set(pairs)
	default:
		return fmt.Errorf("a %s cannot be set", into.Type())
	}
	return nil
}
