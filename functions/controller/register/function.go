// Package register tells the lighthouse that this controller is there, again and again: it is forgotten by the lighthouse when
// it falls silent.
package register

import (
	"context"
	"net/http"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/lighthouse"
	"github.com/littoral-project/littoral/shared/peer"
)

// Spec declares the function.
var Spec = function.Spec{
	Consumes:    []string{events.Tick},
	Concurrency: 1,
	Storeless:   true,
	Needs:       []function.Need{function.ClientCredentials, function.Peers},
}

// Function is the task with what it calls the lighthouse by.
type Function struct{ peers *peer.Client }

// New reads the settings.
func New(env *function.Env) (*Function, error) {
	peers, err := peer.Open(env.Config, env.HTTP)
	return &Function{peers}, err
}

// Run registers; without a lighthouse, or without a name and an address to register, it does nothing.
func (f *Function) Run(ctx context.Context) error {
	p := f.peers
	if p.Lighthouse() == "" || p.Name() == "" || p.Address() == "" {
		return nil
	}
	return p.Call(ctx, p.At(p.Lighthouse()), http.MethodPost, lighthouse.Path,
		map[string]string{"name": p.Name(), "address": p.Address()}, nil)
}
