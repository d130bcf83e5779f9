package triggers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"

	eventingv1 "knative.dev/eventing/pkg/apis/eventing/v1"
	"sigs.k8s.io/yaml"

	"github.com/littoral-project/littoral/shared/events"
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
// them.
func Takes(spec eventingv1.TriggerSpec) ([]map[string]string, error) {
	text, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	var selection events.Selection
	if err := json.Unmarshal(text, &selection); err != nil {
		return nil, err
	}
	return selection.Kinds()
}
