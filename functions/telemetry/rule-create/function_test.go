package rulecreate_test

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	rulecreate "github.com/littoral-project/littoral/functions/telemetry/rule-create"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/settings"
)

// TestNew: invalid settings are reported at the start, not with the first rule. Without a backend the function starts,
// since an installation need not watch anything. Its behaviour is tested in test/contracts/rules_test.go.
func TestNew(t *testing.T) {
	for name, row := range map[string]struct {
		env  map[string]string
		want string
	}{
		"no back end":               {nil, ""},
		"files":                     {map[string]string{"RULES_BACKEND": "files", "RULES_DIR": t.TempDir()}, ""},
		"files without a directory": {map[string]string{"RULES_BACKEND": "files"}, "RULES_DIR"},
		"a ruler": {
			map[string]string{"RULES_BACKEND": "mimir", "RULES_URL": "http://mimir/prometheus"}, "",
		},
		"a ruler without an address":    {map[string]string{"RULES_BACKEND": "mimir"}, "RULES_URL"},
		"objects outside of a cluster":  {map[string]string{"RULES_BACKEND": "prometheusrule"}, "prometheusrule"},
		"the service without a scheme":  {map[string]string{"RULES_BACKEND": "icos", "RULES_URL": "rules:9099"}, "RULES_URL"},
		"a back end that nobody knows":  {map[string]string{"RULES_BACKEND": "paper"}, "files, prometheusrule, mimir, icos"},
		"a setting for this one itself": {map[string]string{"TELEMETRY_RULE_CREATE_RULES_BACKEND": "paper"}, "paper"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := function.NewEntry("telemetry-rule-create", rulecreate.Spec, rulecreate.New).Handler(function.Platform{
				Auth: &auth.Verifier{}, Log: slog.New(slog.DiscardHandler), Settings: settings.Map(row.env),
			}.Env("telemetry-rule-create"))
			if row.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, row.want)
		})
	}
}
