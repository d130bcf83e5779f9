package render

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/problem"
)

func TestWithinConfinesEverySelector(t *testing.T) {
	t.Parallel()
	for expr, want := range map[string]string{
		`a`:                           `a{icos_app_instance="x"}`,
		`up`:                          `up`,
		`a{icos_app_instance=~".+"}`:  `a{icos_app_instance="x",icos_app_instance=~".+"}`,
		`a{icos_app_instance="y"}`:    `a{icos_app_instance="x",icos_app_instance="y"}`,
		`{__name__=~"up|a"}`:          `{__name__=~"up|a",icos_app_instance="x"}`,
		`sum(rate(a[5m])) / up or b`:  `sum(rate(a{icos_app_instance="x"}[5m])) / up or b{icos_app_instance="x"}`,
		`max_over_time(a[1h:1m] @ 5)`: `max_over_time(a{icos_app_instance="x"}[1h:1m] @ 5.000)`,
		`label_replace(a, "b", "c", "icos_app_instance", "(.*)")`: `label_replace(a{icos_app_instance="x"}, "b", "c", "icos_app_instance", "(.*)")`,
		`absent(a offset 5m)`: `absent(a{icos_app_instance="x"} offset 5m)`,
	} {
		got, err := Within(expr, []string{"x"})
		require.NoError(t, err, expr)
		want, err := Valid(want)
		require.NoError(t, err)
		require.Equal(t, sorted(t, want), sorted(t, got), expr)
	}
	for _, bad := range []string{"", "a[5m]", `"text"`, "a +", strings.Repeat("(", 100) + "a" + strings.Repeat(")", 100)} {
		_, err := Within(bad, []string{"x"})
		require.Equal(t, problem.Invalid, problem.KindOf(err), bad)
	}
}

// sorted prints an expression with the matchers of each selector in order.
func sorted(t *testing.T, expr string) string {
	t.Helper()
	tree, err := parse(expr)
	require.NoError(t, err)
	for _, n := range selectors(tree) {
		n.LabelMatchers = append([]*labels.Matcher{}, n.LabelMatchers...)
		for i := range n.LabelMatchers {
			for j := range i {
				if n.LabelMatchers[i].String() < n.LabelMatchers[j].String() {
					n.LabelMatchers[i], n.LabelMatchers[j] = n.LabelMatchers[j], n.LabelMatchers[i]
				}
			}
		}
	}
	return tree.String()
}

// TestNoSelectorReachesAnotherTenant: of random expressions over random tenants, no selector that is confined matches a
// series of somebody else.
func TestNoSelectorReachesAnotherTenant(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(35, 1))
	names := []string{"a", "b", "tlum_workload_info", "container_cpu_utilization_ratio", "up"}
	values := []string{"x", "y", "x|y", ".*", ".+", "", "x.*", "-", `x"`, "x+"}
	ops := []string{"=", "!=", "=~", "!~"}
	var expr func(depth int) string
	expr = func(depth int) string {
		pick := func(list []string) string { return list[random.IntN(len(list))] }
		if depth == 0 {
			s := pick(names) + "{"
			for range random.IntN(3) {
				s += fmt.Sprintf("%s%s%q,", pick([]string{"icos_app_instance", "pod", "__name__"}), pick(ops), pick(values))
			}
			return s + "}"
		}
		inner := expr(depth - 1)
		return pick([]string{
			"sum by (icos_app_instance) (" + inner + ")", "(" + inner + ") or (" + expr(depth-1) + ")", "rate((" + inner + ")[5m:1m])",
			"(" + inner + ") * on (pod) group_left () (" + expr(depth-1) + ")", "abs(" + inner + ")", "-(" + inner + ")", "absent(" + inner + ")",
		})
	}
	tried := 0
	for range 3000 {
		mine := values[:random.IntN(3)]
		text := expr(random.IntN(4))
		got, err := Within(text, mine)
		if err != nil {
			continue // no PromQL
		}
		tried++
		tree, err := parse(got)
		require.NoError(t, err)
		for _, n := range selectors(tree) {
			if ofNodes(n) {
				continue
			}
			for _, tenant := range append([]string{"z", "", "xx", "x|y"}, values...) {
				owned := false
				for _, own := range mine {
					owned = owned || own == tenant
				}
				if owned || tenant == nobody && len(mine) == 0 {
					continue
				}
				admitted := true
				for _, m := range n.LabelMatchers {
					if m.Name == "icos_app_instance" {
						admitted = admitted && m.Matches(tenant)
					}
				}
				require.False(t, admitted, "%s of %q by %v admits %q", got, text, mine, tenant)
			}
		}
	}
	require.Greater(t, tried, 1000)
}

func TestUsageIsOfTheApplicationsAlone(t *testing.T) {
	t.Parallel()
	for _, use := range Usages() {
		for _, instances := range [][]string{nil, {}, {"x"}, {"x", `y"}`}} {
			got, err := Usage(use, instances)
			require.NoError(t, err)
			require.Contains(t, got, "tlum_workload_info{icos_app_instance")
		}
	}
	_, err := Usage("disk", nil)
	require.Error(t, err)
}
