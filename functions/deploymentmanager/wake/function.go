// Package wake tells the agent of a machine with Docker or Podman that there is work for it, if it can be reached, so that it
// need not find out by asking.
package wake

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
)

// Spec declares the function.
var Spec = function.Spec{
	Consumes:  []string{events.JobReady},
	NoPrewake: true,
	Class:     function.Remote,
	Needs:     []function.Need{function.EdgeAgents},
}

// Function is the reaction with the agents that it can reach.
type Function struct {
	log    *slog.Logger
	client *http.Client
	agents map[string]*url.URL // by cluster; the token is the address's user
}

type config struct {
	Agents []string `envconfig:"EDGE_AGENTS"`
}

// New reads the settings and dials nothing.
func New(env *function.Env) (*Function, error) {
	var c config
	if err := env.Config(&c); err != nil {
		return nil, err
	}
	f := &Function{log: env.Log, client: env.HTTP, agents: map[string]*url.URL{}}
	for i, text := range c.Agents {
		cluster, address, both := strings.Cut(strings.TrimSpace(text), "=")
		at, err := url.Parse(address)
		if !both || cluster == "" || err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Host == "" || at.User.Username() == "" {
			return nil, fmt.Errorf("EDGE_AGENTS: number %d is not of the form cluster=https://token@host:port", i+1) // with its token it is not shown
		}
		f.agents[cluster] = at
	}
	return f, nil
}

// patience is how long an agent may take to answer that it will ask.
const patience = 5 * time.Second

// Work wakes the agent of the job's cluster. One that does not answer, or is not to be reached, asks by itself before long, so
// nothing is tried again.
func (f *Function) Work(ctx context.Context, e cloudevents.Event) error {
	about, err := events.Data[events.Job](e)
	if err != nil {
		return err
	}
	at := f.agents[about.Cluster]
	if at == nil {
		return nil
	}
	if err := f.wake(ctx, at); err != nil {
		f.log.WarnContext(ctx, "an agent was not woken; it asks by itself", "cluster", about.Cluster, "error", err.Error())
	}
	return nil
}

func (f *Function) wake(ctx context.Context, at *url.URL) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	to := *at
	to.User = nil
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, to.JoinPath("wake").String(), http.NoBody)
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+at.User.Username())
	got, err := f.client.Do(r)
	if err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(got.Body, 1<<10))
	_ = got.Body.Close()
	if got.StatusCode != http.StatusAccepted {
		return errors.New("it answers " + got.Status)
	}
	return nil
}
