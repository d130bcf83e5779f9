package variables_test

import (
	"testing"

	"github.com/compose-spec/compose-go/v2/template"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/compose/variables"
)

// corpus are texts with variables in all the forms that the specification has, and with some that it has not.
var corpus = []string{
	"", "plain", "$", "$$", "$$$$", "$$A", "$$$A", "a$", "$5", "$-", "a $ b", "100$",
	"$A", "$A$B", "$AB", "$A_1", "x-$A-y", "$NONE", "$EMPTY", "$_", "$lower",
	"${A}", "x${A}y", "${A}${B}", "${NONE}", "${EMPTY}", "${lower}",
	"${A:-d}", "${NONE:-d}", "${EMPTY:-d}", "${A-d}", "${NONE-d}", "${EMPTY-d}", "${NONE:-}", "${NONE-}",
	"${A:+p}", "${NONE:+p}", "${EMPTY:+p}", "${A+p}", "${NONE+p}", "${EMPTY+p}",
	"${A:?e}", "${NONE:?e}", "${EMPTY:?e}", "${A?e}", "${NONE?e}", "${EMPTY?e}",
	"${NONE:-${A}}", "${NONE:-x${A}y}", "${NONE:-${EMPTY:-${B}}}", "${NONE:-$A}", "${A:+${B}}", "${NONE:-a b}", "${NONE:-http://x/y?z=1}",
	"${NONE:-1.5}", "${A}:${NONE:-80}/${B}", "image:${TAG:-latest}@x", "${NONE:-$$A}",
	"${", "${}", "${5}", "${A", "x${", "${A B}", "${A:}",
}

// TestEveryFormIsReadAsTheLibraryReadsIt holds our reading against that of the specification's own library.
func TestEveryFormIsReadAsTheLibraryReadsIt(t *testing.T) {
	t.Parallel()
	values := map[string]string{"A": "one", "B": "2", "EMPTY": "", "A_1": "three", "AB": "four", "lower": "five"}
	lookup := func(name string) (string, bool) { v, ok := values[name]; return v, ok }
	for _, text := range corpus {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			want, wantErr := template.Substitute(text, lookup)
			got, missing, err := variables.Put(text, lookup)
			require.Equal(t, wantErr != nil, err != nil, "%v, and the library: %v", err, wantErr)
			if err != nil {
				return
			}
			require.Equal(t, want, got)
			var unset []string
			for _, v := range template.ExtractVariables(map[string]any{"text": text}, template.DefaultPattern) {
				if _, ok := values[v.Name]; !ok && v.DefaultValue == "" && v.PresenceValue == "" && !v.Required {
					unset = append(unset, v.Name)
				}
			}
			if len(missing) > 0 {
				require.Contains(t, unset, missing[0])
			}
		})
	}
}
