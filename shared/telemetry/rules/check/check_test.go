package check_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/telemetry/rules/check"
)

// rule wraps the fields of one rule into a request in ICOS's format.
func rule(members string) string {
	return `{"data": {"groups": [{"name": "shop", "rules": [{` + members + `}]}]}}`
}

func TestRequest_takesWhatPrometheusLoads(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"the policy manager's group": rule(`"alert": "shop:rule-0", "expr": "up > 1", "for": "0", "labels": {},
			"annotations": {"plm_id": "x", "plm_expr_value": "{{ $value }}", "plm_measurement_backend": "prom-1"}`),
		"a plain rule file": `{"groups": [{"name": "a", "interval": "5s",
			"rules": [{"record": "a:b", "expr": "sum(up)"}]}]}`,
		"a name beyond ASCII":     rule(`"alert": "läden 日本", "expr": "up"`),
		"an expression with text": rule(`"alert": "a", "expr": "count({a=~\"x{1,2}\\\\d\"}) # expr"`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			groups, err := check.Request([]byte(body))
			require.NoError(t, err)
			require.Len(t, groups, 1)
			require.Len(t, groups[0].Rules, 1)
		})
	}
}

func TestRequest_namesEveryFault(t *testing.T) {
	t.Parallel()
	at := "data.groups[0].rules[0]"
	many := strings.Repeat(`{"record": "a", "expr": "1"},`, 1001)
	for name, row := range map[string]struct {
		body  string
		paths []string
		says  string
	}{
		"no groups":          {`{}`, []string{"groups"}, "at least one group"},
		"an empty list":      {`{"data": {"groups": []}}`, []string{"data.groups"}, "at least one group"},
		"both forms at once": {`{"data": {"groups": []}, "groups": []}`, []string{"groups", "groups"}, "beside data"},
		"no name": {
			`{"groups": [{"rules": [{"record": "a", "expr": "1"}]}]}`, []string{"groups[0].name"}, "missing",
		},
		"a name with a newline": {
			`{"groups": [{"name": "a\nb", "rules": [{"record": "a", "expr": "1"}]}]}`, []string{"groups[0].name"}, "control",
		},
		"no rules": {`{"groups": [{"name": "a", "rules": []}]}`, []string{"groups[0].rules"}, "0 rules"},
		"too many rules": {
			`{"groups": [{"name": "a", "rules": [` + many[:len(many)-1] + `]}]}`, []string{"groups[0].rules"}, "1001 rules",
		},
		"the same name twice": {
			`{"groups": [{"name": "a", "rules": [{"record": "a", "expr": "1"}]},
				{"name": "a", "rules": [{"record": "a", "expr": "1"}]}]}`,
			[]string{"groups[1].name"},
			"groups[0]",
		},
		"an expression that does not parse": {rule(`"alert": "a", "expr": "sum("`), []string{at + ".expr"}, "parse error"},
		"no expression":                     {rule(`"alert": "a"`), []string{at + ".expr"}, "must be set"},
		"a huge expression": {
			rule(`"alert": "a", "expr": "` + strings.Repeat("(", 20000) + `"`), []string{at + ".expr"}, "at most",
		},
		"neither alert nor record": {rule(`"expr": "up"`), []string{at}, "must be set"},
		"both alert and record":    {rule(`"alert": "a", "record": "b", "expr": "up"`), []string{at}, "only one"},
		"a for that is no duration": {
			rule(`"alert": "a", "expr": "up", "for": "soon"`), []string{at + ".for"}, "duration",
		},
		"a label that cannot be": {
			rule(`"alert": "a", "expr": "up", "labels": {"": "x"}`), []string{at}, "label name",
		},
		"a template that does not parse": {
			rule(`"alert": "a", "expr": "up", "annotations": {"x": "{{ $value"}`), []string{at}, "annotation",
		},
		"a misspelled member": {
			rule(`"alert": "a", "expr": "up", "anotations": {}`), []string{""}, `unknown field "anotations"`,
		},
		"values of wrong types": {
			rule(`"alert": 1, "expr": [], "labels": {"a": 5}`),
			[]string{at + ".alert", at + ".expr", at + ".labels.a"},
			"string",
		},
		"everything at once": {
			`{"data": {"groups": [{"name": "", "interval": "x", "limit": -1, "labels": {"__name__": "y"}, "rules": [
				{"alert": "a", "expr": "up +", "for": "y"}, {"record": "b{", "expr": "up", "annotations": {"a": "b"}}]}]}}`,
			[]string{
				"data.groups[0].name", "data.groups[0].interval", "data.groups[0].limit", "data.groups[0].labels",
				at + ".for", at + ".expr", "data.groups[0].rules[1]", "data.groups[0].rules[1]",
			},
			"",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := check.Request([]byte(row.body))
			var p *problem.Error
			require.True(t, errors.As(err, &p), "%v", err)
			require.Equal(t, problem.Invalid, p.Kind)
			var paths []string
			for _, f := range p.Fields {
				paths = append(paths, f.Path)
			}
			require.ElementsMatch(t, row.paths, paths, "%v", p.Fields)
			require.Contains(t, fmt.Sprint(p.Fields), row.says)
		})
	}
	_, err := check.Request([]byte(`{"groups"`))
	require.Equal(t, problem.Malformed, problem.KindOf(err))
}

func FuzzRequest(f *testing.F) {
	f.Add(rule(`"alert": "a", "expr": "up > 1", "for": "1m"`))
	f.Add(`{"groups": [{"name": "a", "labels": {"a": "&x *x"}, "rules": [{"record": "a", "expr": "1"}]}]}`)
	f.Fuzz(func(t *testing.T, body string) {
		groups, err := check.Request([]byte(body))
		if err != nil {
			require.Contains(t, []problem.Kind{problem.Malformed, problem.Invalid}, problem.KindOf(err))
			return
		}
		require.NotEmpty(t, groups)
	})
}
