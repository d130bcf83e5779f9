// Package metricspredict foresees a metric for the ICOS shell.
package metricspredict

import (
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/icosshell"
	"github.com/littoral-project/littoral/shared/problem"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes:    []function.Route{{Pattern: "POST /api/v3/metrics/predict", Role: auth.Operator}},
	Needs:     []function.Need{function.SignIn}, // refresh tokens are sent as api_key
	Storeless: true,
}

// Function is the operation.
type Function struct{ icosshell.Callers }

// New reads the settings.
func New(env *function.Env) (*Function, error) {
	callers, err := icosshell.NewCallers(env)
	return &Function{callers}, err
}

// Handle answers 501: metrics export is not part of this deployment.
func (f *Function) Handle(http.ResponseWriter, *http.Request) error {
	return problem.New(problem.NotImplemented, "metrics export, which trains models and foresees metrics, is not deployed here")
}
