package ruleclient

import (
	"encoding/json"

	"github.com/littoral-project/littoral/shared/policy/registry"
	"github.com/littoral-project/littoral/shared/problem"
)

// entry is one rule group as the APIs list it: with its groups beside the file, or as the group itself.
type entry struct {
	File   string               `json:"file"`
	ID     string               `json:"id"`
	Groups []registry.RuleGroup `json:"groups"`
	Group  *registry.RuleGroup  `json:"group"`
	Data   *registry.RuleFile   `json:"data"`
	registry.RuleGroup
}

// decodeList reads a list of entries, or an object of them by file, or one that has either under "data" or "rules".
func decodeList(raw json.RawMessage) (map[string]registry.RuleGroup, error) {
	var list []entry
	if err := json.Unmarshal(raw, &list); err == nil {
		return collect(list), nil
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(raw, &object); err != nil {
		return nil, problem.Wrap(problem.Unavailable, err, "the rules API answered what is no list of rules")
	}
	for _, name := range []string{"data", "rules", "files", "groups"} {
		if inner, ok := object[name]; ok {
			return decodeList(inner)
		}
	}
	for file, inner := range object {
		var e entry
		if err := json.Unmarshal(inner, &e); err != nil {
			return nil, problem.Wrap(problem.Unavailable, err, "the rules API answered what is no list of rules")
		}
		e.File = file
		list = append(list, e)
	}
	return collect(list), nil
}

func collect(list []entry) map[string]registry.RuleGroup {
	found := make(map[string]registry.RuleGroup, len(list))
	for _, e := range list {
		file := e.File
		if file == "" {
			file = e.ID
		}
		groups := e.Groups
		if e.Data != nil {
			groups = e.Data.Groups
		}
		switch {
		case file == "":
		case e.Group != nil:
			found[file] = *e.Group
		case len(groups) > 0:
			found[file] = groups[0]
		case len(e.Rules) > 0:
			found[file] = e.RuleGroup
		}
	}
	return found
}
