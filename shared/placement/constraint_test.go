package placement_test

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/placement"
)

// apartFromTheKey are the fields of a Component that need not be in the key of its class, and why.
var apartFromTheKey = map[string]string{
	"ID":           "names it",
	"Name":         "what it is called",
	"Group":        "its settings that matter are in the key by value",
	"AntiAffinity": "a rule between components, which the solver keeps for each of them",
}

// TestEveryFieldIsInTheKey changes one field after the other. Components of one key share their candidates, so a field
// that a constraint reads and the key lacks gives wrong plans.
func TestEveryFieldIsInTheKey(t *testing.T) {
	t.Parallel()
	var plain placement.Component
	kind := reflect.TypeFor[placement.Component]()
	for i := range kind.NumField() {
		name := kind.Field(i).Name
		if _, apart := apartFromTheKey[name]; apart {
			continue
		}
		changed := plain
		fill(t, reflect.ValueOf(&changed).Elem().Field(i), 1)
		require.NotEqual(t, placement.Key(&plain), placement.Key(&changed), "%s set", name)
		other := plain
		fill(t, reflect.ValueOf(&other).Elem().Field(i), 2)
		if kind.Field(i).Type.Kind() != reflect.Bool {
			require.NotEqual(t, placement.Key(&changed), placement.Key(&other), "%s changed", name)
		}
	}
	for name := range apartFromTheKey {
		_, known := kind.FieldByName(name)
		require.True(t, known, "Component has no field %s any more", name)
	}
}

// fill gives a value something that is not its zero, different for each n.
func fill(t *testing.T, v reflect.Value, n int) {
	t.Helper()
	switch v.Kind() {
	case reflect.String:
		v.SetString(string(rune('a' + n)))
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(n))
	case reflect.Float64:
		v.SetFloat(float64(n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(t, v.Index(0), n)
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(t, key, 1)
		fill(t, value, n)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct: // one field is enough: each is written alike, and a whole place is not in the key of Current
		fill(t, v.Field(0), n)
	default:
		require.Fail(t, "a field of another kind", v.Kind().String())
	}
}

// TestKeysOfDifferentListsDiffer has pairs whose values would be the same text without marks between them.
func TestKeysOfDifferentListsDiffer(t *testing.T) {
	t.Parallel()
	for _, pair := range [][2]placement.Component{
		{{Engines: []string{"a", "b"}}, {Engines: []string{`a""b`}}},
		{{Engines: []string{"a"}}, {Orchestrators: []string{"a"}}},
		{{Labels: map[string][]string{"a": {"b"}, "c": {"d"}}}, {Labels: map[string][]string{"a": {"b", "c", "d"}}}},
		{{CPU: 12, Memory: 3}, {CPU: 1, Memory: 23}},
		{{Resources: map[string]int64{"a": 1, "b": 2}}, {Resources: map[string]int64{"a": 12}}},
		{{Targets: []placement.Target{{Node: "a"}, {}}}, {Targets: []placement.Target{{}, {Node: "a"}}}},
		{{MinSecurity: 5}, {MinFreeMemory: 5}},
		{{MaxCPUUsage: 0.5}, {MaxMemoryUsage: 0.5}},
	} {
		require.NotEqual(t, placement.Key(&pair[0]), placement.Key(&pair[1]))
	}
	require.Equal(t, placement.Key(&placement.Component{Devices: []string{"a", "b"}}),
		placement.Key(&placement.Component{Devices: []string{"b", "a"}}), "order means nothing")
}
