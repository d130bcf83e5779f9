package events

import (
	"errors"
	"maps"
)

// Filter is a filter of a Trigger, in the form of the API for subscriptions.
type Filter struct {
	Exact  map[string]string `json:"exact,omitempty"`
	All    []Filter          `json:"all,omitempty"`
	Any    []Filter          `json:"any,omitempty"`
	Prefix map[string]string `json:"prefix,omitempty"`
	Suffix map[string]string `json:"suffix,omitempty"`
	Not    *Filter           `json:"not,omitempty"`
	CESQL  string            `json:"cesql,omitempty"`
}

// Selection is the part of a Trigger that says which events it takes. Filters wins where both are given, as in Knative.
type Selection struct {
	Filter *struct {
		Attributes map[string]string `json:"attributes"`
	} `json:"filter"`
	Filters []Filter `json:"filters"`
}

// Kinds lists the kinds of events that are selected, each by the attributes that an event must have, "type" among them.
// The dialects of filters beside exact, all and any say less clearly what wakes what, and are refused.
func (s Selection) Kinds() ([]map[string]string, error) {
	kinds := []map[string]string{{}}
	if len(s.Filters) == 0 && s.Filter != nil {
		kinds = []map[string]string{s.Filter.Attributes}
	}
	kinds, err := narrow(kinds, s.Filters)
	if err != nil {
		return nil, err
	}
	for _, attributes := range kinds {
		if attributes["type"] == "" {
			return nil, errors.New("a Trigger takes events of any type")
		}
	}
	return kinds, nil
}

// narrow returns the kinds of events that also pass all filters.
func narrow(kinds []map[string]string, all []Filter) ([]map[string]string, error) {
	for _, f := range all {
		var passing []map[string]string
		switch {
		case len(f.Prefix)+len(f.Suffix)+len(f.CESQL) > 0 || f.Not != nil:
			return nil, errors.New("a Trigger has a filter that is neither exact, all nor any")
		case len(f.Exact) > 0:
			for _, k := range kinds {
				both := maps.Clone(k)
				maps.Copy(both, f.Exact)
				passing = append(passing, both)
			}
		case len(f.All) > 0:
			var err error
			if passing, err = narrow(kinds, f.All); err != nil {
				return nil, err
			}
		default:
			for _, one := range f.Any {
				some, err := narrow(kinds, []Filter{one})
				if err != nil {
					return nil, err
				}
				passing = append(passing, some...)
			}
		}
		kinds = passing
	}
	return kinds, nil
}
