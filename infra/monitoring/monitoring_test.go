// Package monitoring_test holds the alerts and the dashboard to what Littoral measures.
package monitoring_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/require"
)

// source is all Go code of the tree that is not a test.
func source(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, root := range []string{"../../shared", "../../functions"} {
		require.NoError(t, filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			all.Write(text)
			return err
		}))
	}
	return all.String()
}

// named lists the metrics of an expression as the code calls them: as OpenTelemetry does, or as Prometheus does.
func named(t *testing.T, expr string) (names [][2]string) {
	t.Helper()
	tree, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
	require.NoError(t, err, expr)
	parser.Inspect(tree, func(n parser.Node, _ []parser.Node) error {
		if v, ok := n.(*parser.VectorSelector); ok {
			require.NotEmpty(t, v.Name, expr)
			base := regexp.MustCompile(`_(bucket|count|sum)$`).ReplaceAllString(v.Name, "")
			otel := strings.ReplaceAll(strings.TrimSuffix(base, "_seconds"), "_", ".")
			names = append(names, [2]string{otel, base})
		}
		return nil
	})
	require.NotEmpty(t, names, expr)
	return names
}

func exists(t *testing.T, code, expr string) {
	t.Helper()
	for _, name := range named(t, expr) {
		require.True(t, strings.Contains(code, `"`+name[0]+`"`) || strings.Contains(code, name[1]),
			"no function measures %s: %s", name[1], expr)
	}
}

func TestAlertsAreRulesAboutWhatIsMeasured(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("alerts.yml")
	require.NoError(t, err)
	groups, faults := rulefmt.Parse(text, false, model.UTF8Validation, parser.NewParser(parser.Options{}), promslog.NewNopLogger())
	require.Empty(t, faults)
	page, err := os.ReadFile("README.md")
	require.NoError(t, err)
	code := source(t)
	alerts := 0
	for _, g := range groups.Groups {
		for _, r := range g.Rules {
			alerts++
			exists(t, code, r.Expr)
			require.Contains(t, []string{"warning", "critical"}, r.Labels["severity"], r.Alert)
			require.NotEmpty(t, r.Annotations["summary"], r.Alert)
			require.Equal(t, "infra/monitoring/README.md#"+strings.ToLower(r.Alert), r.Annotations["runbook"])
			require.Contains(t, string(page), "\n## "+r.Alert+"\n", "each alert has a part of the page")
		}
	}
	require.Len(t, regexp.MustCompile(`(?m)^## Littoral`).FindAll(page, -1), alerts, "and each part an alert")
}

func TestTheDashboardShowsWhatIsMeasured(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("dashboard.json")
	require.NoError(t, err)
	var board struct {
		UID, Title string
		Templating struct {
			List []struct{ Name, Type, Query string }
		}
		Panels []struct {
			ID                       int
			Type, Title, Description string
			GridPos                  struct{ H, W, X, Y int }
			Targets                  []struct {
				RefID, Expr string
				Datasource  struct{ UID string }
			}
		}
	}
	require.NoError(t, json.Unmarshal(text, &board))
	require.NotEmpty(t, board.UID)
	require.NotEmpty(t, board.Panels)
	require.Equal(t, "datasource", board.Templating.List[0].Type)
	code, taken := source(t), map[[2]int]bool{}
	for _, p := range board.Panels {
		require.NotEmpty(t, p.Description, p.Title)
		at := [2]int{p.GridPos.X, p.GridPos.Y}
		require.False(t, taken[at], "%s lies on another", p.Title)
		taken[at] = true
		require.LessOrEqual(t, p.GridPos.X+p.GridPos.W, 24, p.Title)
		for _, target := range p.Targets {
			require.Equal(t, "${"+board.Templating.List[0].Name+"}", target.Datasource.UID)
			exists(t, code, target.Expr)
		}
	}
}
