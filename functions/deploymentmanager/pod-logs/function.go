// Package podlogs answers what the containers of an application write where they run now, through the APIs of their clusters. It is for
// sites without a log store.
package podlogs

import (
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/application"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/logs"
	"github.com/littoral-project/littoral/shared/logs/ask"
	"github.com/littoral-project/littoral/shared/logs/moves"
	"github.com/littoral-project/littoral/shared/logs/pods"
	"github.com/littoral-project/littoral/shared/orchestrator/kubernetes"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/telemetry/tenant"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes:     []function.Route{{Pattern: "GET /deploymentmanager/logs", Role: auth.Viewer}},
	Class:      function.Series,
	Kubernetes: true,
}

// Function is the operation with its store and the clusters.
type Function struct {
	db       *store.DB
	settings kubernetes.Config
	clusters *kubernetes.Directory
}

// New reads the settings and dials nothing.
func New(env *function.Env) (*Function, error) {
	f := &Function{db: env.DB}
	err := env.Config(&f.settings)
	f.clusters = &kubernetes.Directory{Path: f.settings.Directory, Local: f.settings.Local, Wrap: env.Observe.Transport}
	return f, err
}

const usual = 1000 // lines

// Handle answers lines, oldest first, and the moves of their time. It answers 501 where no kubeconfigs are set, and 503
// when none of the clusters of the application answers.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	q := function.NewQuery(r, append(ask.Names(), "app")...)
	query := ask.Query(q, time.Now(), usual, logs.MaxLines)
	var id uuid.UUID
	if app := q.ID("app"); app != nil {
		id = *app
	} else if q.Text("app") == "" {
		q.Fault("app", "is missing: the id of an application")
	}
	query.Application = id.String()
	if err := q.Err(); err != nil {
		return err
	}
	theirs, err := tenant.May(r.Context(), f.db, auth.From(r.Context()), id)
	if err != nil {
		return store.Classify(err)
	}
	if f.settings == (kubernetes.Config{}) {
		return problem.New(problem.NotImplemented, "the clusters cannot be asked: no kubeconfigs are set (KUBECONFIG_DIR)")
	}
	a, err := application.Get(r.Context(), theirs, id)
	if err != nil {
		return err
	}
	lines, missing, err := pods.Read(r.Context(), f.clusters.Open, places(a), query)
	if err != nil {
		return err
	}
	answer, err := moves.Beside(r.Context(), theirs, id, query, lines)
	if err != nil {
		return err
	}
	answer.Missing = missing
	return function.WriteJSON(w, http.StatusOK, answer)
}

// places are the clusters that components of the application are in.
func places(a *application.Application) []pods.Place {
	var list []pods.Place
	for _, j := range a.Jobs {
		p := pods.Place{Cluster: j.Cluster, Namespace: a.Namespace}
		if j.Placed() && !slices.Contains(list, p) {
			list = append(list, p)
		}
	}
	return list
}
