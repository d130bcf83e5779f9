package main

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/littoral-project/littoral/functions"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/triggers"
)

// hops is how far ahead functions are woken. The longest chain that somebody waits for is from an alert to the
// deployment: judge, act, deploy.
const hops = 4

// wiring is which event wakes which function: by the Triggers, and by the declarations what each emits then.
type wiring struct {
	table    []triggers.Row
	registry map[string]function.Entry // by name
}

// readWiring reads the Triggers and the registry.
func readWiring() (wiring, error) {
	table, err := triggers.Table(triggers.Files)
	w := wiring{table: table, registry: map[string]function.Entry{}}
	for _, entry := range functions.Registry {
		w.registry[entry.Name] = entry
	}
	return w, err
}

// prewake is the setting with the functions that an operation's events will need. Reactions and scheduled tasks wake no
// functions: the operation before them has done so, or nobody waits.
func (w wiring) prewake(spec function.Spec) []corev1.EnvVar {
	if len(spec.Routes) == 0 {
		return nil
	}
	var parts []string
	for _, typ := range spec.Emits {
		conditions := map[string][]triggers.Row{} // the rows of the type by what else they ask of an event
		for _, row := range w.table {
			if row.Attributes["type"] == typ {
				conditions[condition(row)] = append(conditions[condition(row)], row)
			}
		}
		for _, c := range slices.Sorted(maps.Keys(conditions)) {
			if names := w.follow(conditions[c], hops); len(names) > 0 {
				parts = append(parts, typ+c+"="+strings.Join(names, ","))
			}
		}
	}
	if len(parts) == 0 {
		return nil
	}
	return []corev1.EnvVar{{Name: "PREWAKE_CHAIN", Value: strings.Join(parts, ";")}}
}

// condition is "?name=value&name=value" with the attributes that a row asks for besides the type, "" for none.
func condition(row triggers.Row) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(row.Attributes)) {
		if name != "type" {
			parts = append(parts, name+"="+row.Attributes[name])
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "?" + strings.Join(parts, "&")
}

// ahead is the entry in the gateway's table for an operation: the functions that its calls nearly always need.
func (w wiring) ahead(spec function.Spec) string {
	var names []string
	for _, typ := range spec.PrewakeFor {
		for _, name := range w.chain(typ, hops) {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	if len(names) == 0 {
		return ""
	}
	return " > " + strings.Join(names, ",")
}

// chain lists the functions that an event of the type leads to within so many hops, whatever its other attributes:
// nearest first, each once.
func (w wiring) chain(typ string, hops int) []string { return w.follow(w.rows(typ), hops) }

// rows are those for events of the types.
func (w wiring) rows(types ...string) []triggers.Row {
	var rows []triggers.Row
	for _, row := range w.table {
		if slices.Contains(types, row.Attributes["type"]) {
			rows = append(rows, row)
		}
	}
	return rows
}

// follow lists the functions of the rows and those that their events lead to, nearest first, each once. If a function
// declares where its chain ends, only that branch is followed. What further events carry besides their type is not
// known ahead: whoever may take one is listed. Functions that are declared NoPrewake are not part of a chain: a node must
// first start what somebody waits for.
func (w wiring) follow(rows []triggers.Row, hops int) []string {
	var names []string
	for range hops {
		var types []string
		for _, row := range slices.SortedStableFunc(slices.Values(rows), func(a, b triggers.Row) int {
			return strings.Compare(a.Function, b.Function)
		}) {
			spec := w.registry[row.Function].Spec
			if spec.NoPrewake || slices.Contains(names, row.Function) {
				continue
			}
			names = append(names, row.Function)
			if len(spec.PrewakeFor) > 0 {
				types = append(types, spec.PrewakeFor...)
			} else {
				types = append(types, spec.Emits...)
			}
		}
		rows = w.rows(types...)
	}
	return names
}
