package registry

import (
	"time"

	"github.com/littoral-project/littoral/shared/policy/template"
	"github.com/littoral-project/littoral/shared/problem"
)

// How far ahead a policy may look.
const (
	leastForecast = time.Minute
	mostForecast  = 24 * time.Hour
)

// Ahead is how far ahead the policy looks; 0 = it does not.
func (p *Properties) Ahead() time.Duration {
	d, _ := template.ParseDuration(p.Forecast)
	return d
}

func (p *Properties) check(faults *problem.Faults) {
	for _, field := range []struct{ name, value string }{
		{"interval", p.Interval}, {"pendingInterval", p.PendingInterval}, {"forecast", p.Forecast},
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
		case field.name == "forecast" && (d < leastForecast || d > mostForecast):
			faults.Add("properties.forecast", 0, "must be from %s to %s", template.FormatDuration(leastForecast), template.FormatDuration(mostForecast))
		}
	}
}
