package job

import (
	"strings"

	"github.com/littoral-project/littoral/shared/appmodel"
	"github.com/littoral-project/littoral/shared/orchestrator/kinds"
	"github.com/littoral-project/littoral/shared/problem"
)

// ParseRemediation reads a remediation by any of its names; redeploy, migrate and reallocation are reallocate.
func ParseRemediation(s string) (Remediation, error) {
	if canonical, ok := appmodel.Remediation(s); ok {
		return Remediation(canonical), nil
	}
	names := []Remediation{NoRemediation, ScaleUp, ScaleDown, ScaleOut, ScaleIn, Patch, Reallocate, ReplaceIt, Secure}
	listed := make([]string, len(names))
	for i, n := range names {
		if listed[i] = string(n); strings.EqualFold(listed[i], s) {
			return n, nil
		}
	}
	f := problem.Field{Path: "remediation", Detail: "\"" + s + "\" is not one of " + strings.Join(listed, ", ")}
	return "", &problem.Error{Kind: problem.Invalid, Detail: "an unknown remediation", Fields: []problem.Field{f}}
}

// UnmarshalJSON accepts any of the names.
func (r *Remediation) UnmarshalJSON(b []byte) error {
	text := strings.Trim(string(b), `"`)
	if text == "null" || text == "" {
		return nil
	}
	v, err := ParseRemediation(text)
	if err != nil {
		return err
	}
	*r = v
	return nil
}

// ParseOrchestrator reads an orchestrator type in any case. The error is Malformed, since it stands in paths.
func ParseOrchestrator(s string) (string, error) {
	if kind, known := kinds.Of(strings.ToLower(s)); known {
		return kind.Name, nil
	}
	return "", problem.New(problem.Malformed, "%q is not an orchestrator; known are %s", s, strings.Join(kinds.Names(), ", "))
}
