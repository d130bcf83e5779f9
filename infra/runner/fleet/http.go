package fleet

import (
	"log/slog"
	"maps"
	"net/http"
	"slices"

	"github.com/littoral-project/littoral/shared/api"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/problem"
)

// Handler serves the fleet's state and its switches:
//
//	GET  /fleet           viewer    the fleet as it is
//	GET  /fleet/metrics   viewer    what it measures, for a Prometheus that scrapes
//	POST /fleet/drain     operator  {"node": "edge-1"}
//	POST /fleet/restore   operator  {"node": "edge-1"}
//	POST /fleet/set       operator  {"node": "edge-1", "set": {"cpu": "0.95", "device:squat.ai/video": "busy"}}
//	POST /fleet/set       operator  {"set": {"app:web": "crash"}}
//	POST /fleet/cut       operator  {"cluster": "edge"}
//	POST /fleet/heal      operator  {"cluster": "edge"}
//
// A POST answers with the state of the cluster after it, or of the whole fleet when it is about components.
func (f *Fleet) Handler(v *auth.Verifier, log *slog.Logger) (http.Handler, error) {
	look := function.Spec{Routes: []function.Route{{Pattern: "GET /fleet", Role: auth.Viewer}}}
	measure := function.Spec{Routes: []function.Route{{Pattern: "GET /fleet/metrics", Role: auth.Viewer}}}
	change := function.Spec{Routes: []function.Route{{Pattern: "POST /fleet/{command}", Role: auth.Operator}}}
	mux := http.NewServeMux()
	for pattern, entry := range map[string]function.Entry{
		"/fleet":             function.NewEntry("fleet-get", look, provide(&watcher{f})),
		"GET /fleet/metrics": function.NewEntry("fleet-metrics", measure, provide(&exposer{f})),
		"/fleet/":            function.NewEntry("fleet-change", change, provide(&commander{f})),
	} {
		h, err := entry.Handler(function.Platform{Auth: v, Log: log}.Env(entry.Name))
		if err != nil {
			return nil, err
		}
		mux.Handle(pattern, h)
	}
	return mux, nil
}

func provide[F any](made F) func(*function.Env) (F, error) {
	return func(*function.Env) (F, error) { return made, nil }
}

type watcher struct{ fleet *Fleet }

func (w *watcher) Handle(out http.ResponseWriter, r *http.Request) error {
	if err := function.NewQuery(r).Err(); err != nil {
		return err
	}
	return function.WriteJSON(out, http.StatusOK, w.fleet.View())
}

type commander struct{ fleet *Fleet }

func (c *commander) Handle(out http.ResponseWriter, r *http.Request) error {
	run, needs := c.command(r.PathValue("command"))
	if run == nil {
		return problem.New(problem.NotFound, "there is no command %q; there are drain, restore, set, cut, heal",
			r.PathValue("command"))
	}
	var in api.FleetCommand
	if err := function.DecodeJSON(r, &in); err != nil {
		return err
	}
	if err := needs(in).Err("the command is not complete"); err != nil {
		return err
	}
	if err := run(in); err != nil {
		return err
	}
	if err := c.fleet.Emit(r.Context()); err != nil { // show the change at once; if it fails, the next round does
		c.fleet.log.WarnContext(r.Context(), "fleet telemetry failed", "error", err.Error())
	}
	for _, cluster := range c.fleet.View().Clusters {
		if c.fleet.concerns(in, cluster.Name) {
			return function.WriteJSON(out, http.StatusOK, cluster)
		}
	}
	return function.WriteJSON(out, http.StatusOK, c.fleet.View())
}

// command returns the function that carries out the command, and one that checks that its body is complete.
func (c *commander) command(name string) (run func(api.FleetCommand) error, needs func(api.FleetCommand) *problem.Faults) {
	f := c.fleet
	switch name {
	case "drain":
		return func(in api.FleetCommand) error { return f.Drain(in.Node) }, needsNode
	case "restore":
		return func(in api.FleetCommand) error { return f.Restore(in.Node) }, needsNode
	case "set":
		return func(in api.FleetCommand) error {
			if aboutComponents(in) {
				return f.SetComponents(in.Set)
			}
			return f.Set(in.Node, in.Set)
		}, needsSettings
	case "cut":
		return func(in api.FleetCommand) error { return f.Cut(in.Cluster) }, needsCluster
	case "heal":
		return func(in api.FleetCommand) error { return f.Heal(in.Cluster) }, needsCluster
	}
	return nil, nil
}

func needsNode(in api.FleetCommand) *problem.Faults {
	var faults problem.Faults
	if in.Node == "" {
		faults.Add("node", 0, "is missing")
	}
	return &faults
}

func needsSettings(in api.FleetCommand) *problem.Faults {
	var faults problem.Faults
	if len(in.Set) == 0 {
		faults.Add("set", 0, "is missing; known settings are %s", knownSettings)
	}
	if in.Node == "" && !aboutComponents(in) {
		faults.Add("node", 0, "is missing")
	}
	return &faults
}

// aboutComponents reports whether the settings need no node.
func aboutComponents(in api.FleetCommand) bool {
	return in.Node == "" && slices.ContainsFunc(slices.Collect(maps.Keys(in.Set)), isComponent)
}

func needsCluster(in api.FleetCommand) *problem.Faults {
	var faults problem.Faults
	if in.Cluster == "" {
		faults.Add("cluster", 0, "is missing")
	}
	return &faults
}

// concerns reports whether the command is about the cluster or one of its nodes.
func (f *Fleet) concerns(in api.FleetCommand, cluster string) bool {
	if in.Node != "" {
		c, _, err := f.findNode(in.Node)
		return err == nil && c.Name == cluster
	}
	c, err := f.findCluster(in.Cluster)
	return err == nil && c.Name == cluster
}
