package contracts_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// blindShop has a policy that is no PromQL, one that needs the role admin, one from a template that there is none of, and
// an unknown key.
const blindShop = `name: blind
colour: red
components:
  - name: web
    type: kubernetes
    manifests: [{name: web, manifest: {apiVersion: v1, kind: Pod, metadata: {name: web}}}]
policies:
  - {name: broken, remediation: none, spec: {expr: "rate(foo[5m"}}
  - {name: foreign, remediation: none, spec: {expr: container_memory_usage_bytes > 1}}
  - {name: nowhere, remediation: none, fromTemplate: no-such}
  - name: also-broken
    remediation: none
    apply-to: [nobody]
    spec:
      expr: |
        up
          > )
`

// soundShop is the same without what cannot be parsed.
var soundShop = strings.NewReplacer("rate(foo[5m", "rate(foo[5m])", "> )", "> 1").Replace(blindShop)

// TestAnExpressionThatCannotBeParsedIsRefused: wherever a descriptor is handed in, one answer lists every fault, with a
// caret at the column, and every warning.
func TestAnExpressionThatCannotBeParsedIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.submit(t, strings.Replace(freeShop, "name: shop", "name: blind", 1))
	w.unchanged(t, func() {
		for _, way := range [][2]string{
			{http.MethodPost, "/jobmanager/groups"},
			{http.MethodPut, "/jobmanager/groups/" + g.ID},
			{http.MethodPost, "/matchmaker/plan"},
			{http.MethodPost, "/matchmaker/explain"},
		} {
			d := w.operator.call(t, way[0], way[1], blindShop).refused(t, http.StatusUnprocessableEntity)
			require.Len(t, d.Errors, 2, "%s: %v", way, d.Errors)
			require.Equal(t, "policies[0].spec.expr", d.Errors[0].Path)
			require.Equal(t, 8, d.Errors[0].Line)
			require.Equal(t, 12, d.Errors[0].Column)
			require.Equal(t, "rate(foo[5m\n           ^", d.Errors[0].Excerpt)
			require.Equal(t, "policies[3].spec.expr", d.Errors[1].Path)
			require.Equal(t, 17, d.Errors[1].Line)
			require.Equal(t, "  > )\n    ^", d.Errors[1].Excerpt)
			var warned []string
			for _, f := range d.Warnings {
				warned = append(warned, f.Path)
				require.Positive(t, f.Line, f.Path)
			}
			require.Equal(t, []string{"colour", "policies[2].fromTemplate", "policies[3].apply-to", "policies[1]"}, warned, way)
		}
	})
}

func TestWarningsAreErrorsWhenItIsStrict(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, way := range [][2]string{
		{http.MethodPost, "/jobmanager/groups?strict=true"}, {http.MethodPost, "/matchmaker/plan?strict=true"},
	} {
		d := w.operator.call(t, way[0], way[1], soundShop).refused(t, http.StatusUnprocessableEntity)
		require.Len(t, d.Errors, 5, "%s: %v", way, d.Errors)
	}
	w.operator.call(t, http.MethodPost, "/matchmaker/plan", soundShop).is(t, http.StatusOK)
	w.operator.call(t, http.MethodPost, "/jobmanager/groups?strict=true", freeShop).is(t, http.StatusCreated)
}
