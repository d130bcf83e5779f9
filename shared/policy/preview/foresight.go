package preview

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/littoral-project/littoral/shared/policy/template"
)

// Foreseen says what the forecast of a policy would have been worth.
type Foreseen struct {
	Ahead      string `json:"ahead"`
	Violations int    `json:"violations"` // that would have fired without it
	Earlier    int    `json:"earlier"`    // of them, those that it would have fired for before
	// SecondsEarlier is how much earlier, in the median of these.
	SecondsEarlier float64 `json:"secondsEarlier"`
	// InVain counts alerts without a violation until the time that they looked ahead to; Open those whose time is not over.
	InVain int `json:"inVain"`
	Open   int `json:"open"`
}

// foresight compares the episodes of a policy that looks ahead with those that it would have had otherwise.
func foresight(fired, real []Episode, ahead time.Duration, until time.Time) *Foreseen {
	f := &Foreseen{Ahead: template.FormatDuration(ahead), Violations: len(real)}
	bySeries := map[string][]Episode{}
	for _, e := range fired {
		bySeries[series(e)] = append(bySeries[series(e)], e)
	}
	var leads []time.Duration
	needed := map[string]map[int]bool{} // the episodes that a violation came of
	for _, r := range real {
		key := series(r)
		if needed[key] == nil {
			needed[key] = map[int]bool{}
		}
		lead := time.Duration(0)
		for i, e := range bySeries[key] {
			if e.From.After(r.FiredAt) || e.To.Add(ahead).Before(r.From) {
				continue
			}
			if !needed[key][i] && lead == 0 { // one episode foresees one violation
				lead = r.FiredAt.Sub(e.FiredAt)
			}
			needed[key][i] = true
		}
		if lead > 0 {
			leads = append(leads, lead)
		}
	}
	for key, list := range bySeries {
		for i, e := range list {
			switch {
			case needed[key][i]:
			case e.To.Add(ahead).After(until):
				f.Open++
			default:
				f.InVain++
			}
		}
	}
	if f.Earlier = len(leads); f.Earlier > 0 {
		slices.Sort(leads)
		f.SecondsEarlier = leads[len(leads)/2].Seconds()
	}
	return f
}

// series tells what an episode is about. The name of a metric is not part of it: a forecast has none.
func series(e Episode) string {
	var key strings.Builder
	for _, name := range slices.Sorted(maps.Keys(e.Labels)) {
		if name != "__name__" {
			key.WriteString(name + "\x00" + e.Labels[name] + "\x00")
		}
	}
	return key.String()
}
