package triggers_test

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/triggers"
)

func trigger(filter string) fstest.MapFS {
	return fstest.MapFS{"place.yaml": {Data: []byte(`kind: PingSource
---
kind: Trigger
spec:
  subscriber: {ref: {name: place}}
` + filter)}}
}

func TestTable_hasARowPerKindOfEvent(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		filter string
		kinds  []map[string]string
	}{
		"one type":            {`  filter: {attributes: {type: a}}`, []map[string]string{{"type": "a"}}},
		"further attributes":  {`  filter: {attributes: {type: a, x: z}}`, []map[string]string{{"type": "a", "x": "z"}}},
		"any of several":      {`  filters: [{any: [{exact: {type: a}}, {exact: {type: b, x: z}}]}]`, []map[string]string{{"type": "a"}, {"type": "b", "x": "z"}}},
		"one for all of them": {`  filters: [{exact: {x: z}}, {any: [{exact: {type: a}}, {exact: {type: b}}]}]`, []map[string]string{{"type": "a", "x": "z"}, {"type": "b", "x": "z"}}},
		"all within any":      {`  filters: [{any: [{all: [{exact: {type: a}}, {exact: {x: z}}]}, {exact: {type: b}}]}]`, []map[string]string{{"type": "a", "x": "z"}, {"type": "b"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table, err := triggers.Table(trigger(row.filter))
			require.NoError(t, err)
			var want []triggers.Row
			for _, k := range row.kinds {
				want = append(want, triggers.Row{Function: "place", Attributes: k})
			}
			require.Equal(t, want, table)
		})
	}
}

func TestTable_refusesWhatItCannotList(t *testing.T) {
	t.Parallel()
	for _, filter := range []string{"", `  filter: {attributes: {x: z}}`, `  filters: [{prefix: {type: a}}]`, `  filters: [{not: {exact: {type: a}}}]`} {
		_, err := triggers.Table(trigger(filter))
		require.Error(t, err, filter)
	}
}
