package alto_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/alto"
)

func TestOperations(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ from, to, want string }{
		{`{"a": 1}`, `{"a": 1}`, ``},
		{`{"a": 1, "gone": {}}`, `{"a": null, "new": [1]}`, `[
			{"op": "remove", "path": "/gone"}, {"op": "replace", "path": "/a", "value": null}, {"op": "add", "path": "/new", "value": [1]}]`},
		{`{"m": {"a/b": 1, "c~d": {"": 2}}}`, `{"m": {"a/b": 3, "c~d": {"": 4}}}`, `[
			{"op": "replace", "path": "/m/a~1b", "value": 3}, {"op": "replace", "path": "/m/c~0d/", "value": 4}]`},
		{`{"m": [1, 2]}`, `{"m": [1, 2, 3]}`, `[{"op": "replace", "path": "/m", "value": [1, 2, 3]}]`},
		{`{"m": {}}`, `[]`, `[{"op": "replace", "path": "", "value": []}]`},
	} {
		patch, err := alto.Operations([]byte(c.from), []byte(c.to))
		require.NoError(t, err)
		if c.want == "" {
			require.Nil(t, patch)
			continue
		}
		require.JSONEq(t, c.want, string(patch))
	}
}

// TestPatchesLeadFromOneDocumentToTheOther: another library applies them to what was before.
func TestPatchesLeadFromOneDocumentToTheOther(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(7, 38))
	var any func(depth int, null bool) string
	any = func(depth int, null bool) string {
		switch k := random.IntN(6); {
		case depth > 0 && k < 4:
			out := "{"
			for i := range random.IntN(5) {
				if i > 0 {
					out += ","
				}
				out += fmt.Sprintf("%q:%s", []string{"a", "b/c", "d~e", "f", "~1"}[i], any(depth-1, null))
			}
			return out + "}"
		case k == 4 && null:
			return "null"
		case k == 5:
			return fmt.Sprintf("[%d,%d]", random.IntN(3), random.IntN(3))
		}
		return fmt.Sprint(random.IntN(4))
	}
	object := func(null bool) []byte { return []byte(`{"m":` + any(3, null) + `,"n":` + any(2, null) + `}`) }
	for range 500 {
		from, to := object(true), object(true)
		if patch, err := alto.Operations(from, to); patch != nil {
			require.NoError(t, err)
			p, err := jsonpatch.DecodePatch(patch)
			require.NoError(t, err)
			got, err := p.Apply(from)
			require.NoError(t, err, "%s by %s", from, patch)
			require.JSONEq(t, string(to), string(got), "%s by %s", from, patch)
		}
		from, to = object(false), object(false)
		if patch, err := alto.Patch(from, to); patch != nil {
			require.NoError(t, err)
			got, err := jsonpatch.MergePatch(from, patch)
			require.NoError(t, err)
			require.JSONEq(t, string(to), string(got), "%s by %s", from, patch)
		}
		require.True(t, json.Valid(from))
	}
}
