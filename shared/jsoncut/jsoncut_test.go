package jsoncut_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/jsoncut"
)

// FuzzMembers: whatever is an object is cut as it would be decoded, and nothing else is taken for one that leads astray.
func FuzzMembers(f *testing.F) {
	for _, seed := range []string{
		`{}`, ` { "a" : 1 , "b" : [ { "c" : "}]," } ] , "d" : "\\\"," } `, `{"a":{"b":{"c":{}}},"e":null}`, `[]`, ``, `{`, `{"a"`, `{"a":`, `{"a":1`, `{"a:1}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, document []byte) {
		var want map[string]json.RawMessage
		valid := json.Unmarshal(document, &want) == nil && want != nil
		got := map[string]string{}
		err := jsoncut.Members(document, func(key, value []byte) error {
			var name string
			if json.Unmarshal([]byte(`"`+string(key)+`"`), &name) == nil {
				got[name] = string(value)
			}
			return nil
		})
		if !valid {
			return // it must only come to an end
		}
		require.NoError(t, err)
		require.Len(t, got, len(want))
		for name, value := range want {
			require.Equal(t, string(value), got[name])
		}
	})
}
