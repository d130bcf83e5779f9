package job

import (
	"encoding/json"
	"strings"

	"github.com/littoral-project/littoral/shared/appmodel"
	"github.com/littoral-project/littoral/shared/orchestrator/kinds"
	"github.com/littoral-project/littoral/shared/problem"
)

// The contracts know each enumeration as numbers (v1.4.1) and as names (D3.2 and later). Both are accepted, in any case;
// names are emitted.

var stateNumbers = map[string]State{
	"1": Created, "2": Progressing, "3": Finished, "4": Degraded,
	"jobcreated": Created, "jobprogressing": Progressing, "jobfinished": Finished, "jobdegraded": Degraded,
}

var typeNumbers = map[string]Type{"5": Create, "6": Delete, "7": Update, "8": Replace}

// parseState reads a state by name or number.
func parseState(s string) (State, error) {
	return parse(s, "state", stateNumbers, Created, Progressing, Finished, Degraded)
}

// parseType reads a job type by name or number.
func parseType(s string) (Type, error) {
	return parse(s, "type", typeNumbers, Create, Delete, Update, Replace)
}

// ParseRemediation reads a remediation by any of its names; redeploy, migrate and reallocation are reallocate.
func ParseRemediation(s string) (Remediation, error) {
	if canonical, ok := appmodel.Remediation(s); ok {
		return Remediation(canonical), nil
	}
	return parse[Remediation](s, "remediation", nil,
		NoRemediation, ScaleUp, ScaleDown, ScaleOut, ScaleIn, Patch, Reallocate, ReplaceIt, Secure)
}

func parse[T ~string](s, what string, aliases map[string]T, names ...T) (T, error) {
	low := strings.ToLower(s)
	if v, ok := aliases[low]; ok {
		return v, nil
	}
	for _, n := range names {
		if strings.ToLower(string(n)) == low {
			return n, nil
		}
	}
	listed := make([]string, len(names))
	for i, n := range names {
		listed[i] = string(n)
	}
	f := problem.Field{Path: what, Detail: "\"" + s + "\" is not one of " + strings.Join(listed, ", ")}
	return "", &problem.Error{Kind: problem.Invalid, Detail: "an unknown " + what, Fields: []problem.Field{f}}
}

// UnmarshalJSON accepts a name or a number.
func (s *State) UnmarshalJSON(b []byte) error { return unmarshalEnum(b, s, parseState) }

// UnmarshalJSON accepts a name or a number.
func (t *Type) UnmarshalJSON(b []byte) error { return unmarshalEnum(b, t, parseType) }

// UnmarshalJSON accepts any of the names.
func (r *Remediation) UnmarshalJSON(b []byte) error { return unmarshalEnum(b, r, ParseRemediation) }

func unmarshalEnum[T ~string](b []byte, into *T, read func(string) (T, error)) error {
	text := strings.Trim(string(b), `"`)
	if text == "null" || text == "" {
		return nil
	}
	v, err := read(text)
	if err != nil {
		return err
	}
	*into = v
	return nil
}

// ParseOrchestrator reads an orchestrator type in any case. The error is Malformed, since it stands in paths.
func ParseOrchestrator(s string) (string, error) {
	if kind, known := kinds.Of(strings.ToLower(s)); known {
		return kind.Name, nil
	}
	return "", problem.New(problem.Malformed, "%q is not an orchestrator; known are %s", s, strings.Join(kinds.Names(), ", "))
}

// UnmarshalJSON accepts a target as an object, as a list (the first counts) or as an empty list.
func (t *Target) UnmarshalJSON(b []byte) error {
	type plain Target
	if trimmed := strings.TrimSpace(string(b)); strings.HasPrefix(trimmed, "[") {
		var list []plain
		if err := json.Unmarshal(b, &list); err != nil || len(list) == 0 {
			return err
		}
		*t = Target(list[0])
		return nil
	}
	return json.Unmarshal(b, (*plain)(t))
}
