// Package generate makes up a world and answers one of its files, as "littoral generate" writes them.
package generate

import (
	"net/http"
	"slices"
	"time"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/generator"
	"github.com/littoral-project/littoral/shared/problem"
)

// Spec declares the function. Files are written while they are made, so that a long one takes no memory.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "GET /pdlc/generated/{generated}", Role: auth.Operator}},
	Class:  function.Batch, Concurrency: 1,
}

// Bounds of what is made for a caller.
const (
	mostNodes        = 1000
	mostApplications = 1000
	mostUsers        = 10_000
	mostMinutes      = 31 * 24 * 60
	mostRows         = 500_000 // nodes times steps
)

// Function is the operation.
type Function struct{}

// New makes the function.
func New(*function.Env) (*Function, error) { return &Function{}, nil }

// Handle answers the file. The same parameters make the same one.
func (*Function) Handle(w http.ResponseWriter, r *http.Request) error {
	q := function.NewQuery(r, "seed", "nodes", "clusters", "applications", "users", "minutes", "step", "legacy")
	o := generator.Default()
	o.Seed = uint64(q.Int("seed", 1, 0, 1<<53)) // not negative
	o.Nodes = int(q.Int("nodes", int64(o.Nodes), 1, mostNodes))
	o.Clusters = int(q.Int("clusters", 0, 0, generator.MaxClusters))
	o.Applications = int(q.Int("applications", int64(o.Applications), 0, mostApplications))
	o.Users = int(q.Int("users", int64(o.Users), 0, mostUsers))
	m := generator.Measured{
		For: time.Duration(q.Int("minutes", 24*60, 1, mostMinutes)) * time.Minute, Step: time.Duration(q.Int("step", 300, 1, 86400)) * time.Second,
		Legacy: q.Bool("legacy"),
	}
	if o.Clusters > o.Nodes {
		q.Fault("clusters", "are more than the %d nodes", o.Nodes)
	}
	if m.Step > m.For {
		q.Fault("step", "is longer than minutes")
	} else if rows := int64(m.For/m.Step) * int64(o.Nodes); rows > mostRows {
		q.Fault("minutes", "with step and nodes make %d rows, at most %d", rows, mostRows)
	}
	if err := q.Err(); err != nil {
		return err
	}
	world, err := generator.New(o)
	if err != nil {
		return err
	}
	files := world.Files(m)
	at := slices.IndexFunc(files, func(f generator.File) bool { return f.Name == r.PathValue("generated") })
	if at < 0 {
		return problem.New(problem.NotFound, "a world has no file %s", problem.Brief(r.PathValue("generated"), 60))
	}
	w.Header().Set("Content-Type", files[at].Type)
	return files[at].Write(w)
}
