package registry

import (
	"github.com/littoral-project/littoral/shared/policy/template"
	"github.com/littoral-project/littoral/shared/problem"
)

func (p *Properties) check(faults *problem.Faults) {
	for _, field := range []struct{ name, value string }{
		{"interval", p.Interval}, {"pendingInterval", p.PendingInterval},
	} {
		if field.value == "" {
			continue
		}
		d, ok := template.ParseDuration(field.value)
		switch {
		case !ok:
			faults.Add("properties."+field.name, 0, "%q is not a duration such as 30s, 5m or 1h30m", short(field.value))
		case field.name == "interval" && d == 0:
			faults.Add("properties.interval", 0, "must be longer than zero")
		}
	}
}
