package triggers

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"

	eventingv1 "knative.dev/eventing/pkg/apis/eventing/v1"
	"sigs.k8s.io/yaml"
)

// Row says that events with these attributes, "type" among them, wake the function.
type Row struct {
	Function   string
	Attributes map[string]string
}

// Table lists what each Trigger in files takes, in the order of the files: one row per kind of event.
func Table(files fs.FS) ([]Row, error) {
	names, err := fs.Glob(files, "*.yaml")
	if err != nil {
		return nil, err
	}
	var table []Row
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		for _, document := range bytes.Split(text, []byte("\n---\n")) {
			var t eventingv1.Trigger
			if err := yaml.Unmarshal(document, &t); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			if t.Kind != "Trigger" {
				continue
			}
			kinds, err := Takes(t.Spec)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			for _, attributes := range kinds {
				table = append(table, Row{Function: t.Spec.Subscriber.Ref.Name, Attributes: attributes})
			}
		}
	}
	return table, nil
}

// Takes lists the kinds of events that a Trigger takes, each by the attributes that an event must have, "type" among
// them. The other dialects of filters say less clearly what wakes what, and are refused.
func Takes(spec eventingv1.TriggerSpec) ([]map[string]string, error) {
	kinds := []map[string]string{{}}
	if len(spec.Filters) == 0 && spec.Filter != nil {
		kinds = []map[string]string{spec.Filter.Attributes}
	}
	kinds, err := narrow(kinds, spec.Filters)
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
func narrow(kinds []map[string]string, all []eventingv1.SubscriptionsAPIFilter) ([]map[string]string, error) {
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
				some, err := narrow(kinds, []eventingv1.SubscriptionsAPIFilter{one})
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
