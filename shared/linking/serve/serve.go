// Package serve makes what the functions of links work with from their settings.
package serve

import (
	"errors"
	"time"

	"github.com/littoral-project/littoral/shared/clusterlink"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/linking/carry"
	"github.com/littoral-project/littoral/shared/orchestrator"
	"github.com/littoral-project/littoral/shared/orchestrator/kinds"
	"github.com/littoral-project/littoral/shared/orchestrator/kubernetes"
	"github.com/littoral-project/littoral/shared/orchestrator/ocm"
)

type config struct {
	Links clusterlink.Settings
	Wait  time.Duration `envconfig:"DEPLOY_WAIT" default:"5s"`
	OCM   ocm.Config
	Kube  kubernetes.Config
}

// Open reads the settings, which are those of the deployment managers, and dials nothing.
func Open(env *function.Env) (*carry.Carrier, error) {
	var c config
	if err := env.Config(&c); err != nil {
		return nil, err
	}
	hub, err := ocm.Open(c.OCM, env.Observe.Transport)
	direct, fault := kubernetes.Open(c.Kube, env.Observe.Transport)
	if err := errors.Join(err, fault, c.Links.Check()); err != nil {
		return nil, err
	}
	return &carry.Carrier{
		DB: env.DB, Log: env.Log, Links: c.Links, Wait: c.Wait,
		Orchestrators: map[string]orchestrator.Orchestrator{kinds.OCM: hub, kinds.Direct: direct},
	}, nil
}
