package job

import (
	"context"
	"fmt"
	"sync"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

const (
	noteBoundAgent   = `insert into bound_agents (agent) values ($1) on conflict do nothing`
	selectKnownAgent = `select exists (select from nodes where agent = $1), exists (select from bound_agents where agent = $1)`
	selectBoundAgent = `select exists (select from bound_agents where agent = $1)`
)

// BoundAgents notes which agents have tokens of their own. The zero BoundAgents is ready.
type BoundAgents struct{ noted sync.Map } // by this process: an agent polls every few seconds

// Note notes the caller's agent if its token is bound to one, once in the life of this process.
func (b *BoundAgents) Note(ctx context.Context, db store.Querier) error {
	agent := auth.From(ctx).AgentID
	if _, done := b.noted.Load(agent); done || agent == "" || len(agent) > maxName {
		return nil
	}
	if _, err := db.Exec(ctx, noteBoundAgent, agent); err != nil {
		return fmt.Errorf("note the agent of a token: %w", err)
	}
	b.noted.Store(agent, true)
	return nil
}

// Admit refuses a caller whose token is bound to no agent and who acts as one that telemetry does not know, or that has polled
// with a token of its own: nothing else would keep it from the jobs of any cluster. The setting UNKNOWN_AGENTS lets it. A name
// that none can have is left to whoever takes it, and says which field is wrong. The error is Forbidden.
func (s Settings) Admit(ctx context.Context, q store.Querier, agent string) error {
	if s.free(ctx, agent) {
		return nil
	}
	var known, bound bool
	if err := q.QueryRow(ctx, selectKnownAgent, agent).Scan(&known, &bound); err != nil {
		return fmt.Errorf("look for the agent: %w", err)
	}
	switch {
	case bound:
		return taken(agent)
	case !known:
		return problem.New(problem.Forbidden, "telemetry knows no agent %q, and the token is bound to none: give it the claim "+
			"icos_agent_id, or allow this to older agents by the setting UNKNOWN_AGENTS", agent)
	}
	return nil
}

// AdmitReport is Admit for what an agent says about jobs that it has: it may have become unknown to telemetry since it took
// them.
func (s Settings) AdmitReport(ctx context.Context, q store.Querier, agent string) error {
	if s.free(ctx, agent) {
		return nil
	}
	var bound bool
	if err := q.QueryRow(ctx, selectBoundAgent, agent).Scan(&bound); err != nil {
		return fmt.Errorf("look for the agent: %w", err)
	}
	if bound {
		return taken(agent)
	}
	return nil
}

// free reports whether nothing has to be looked up.
func (s Settings) free(ctx context.Context, agent string) bool {
	return s.UnknownAgents || agent == "" || len(agent) > maxName || auth.From(ctx).AgentID != ""
}

func taken(agent string) error {
	return problem.New(problem.Forbidden, "agent %q has a token of its own, and this one is bound to no agent: give it the claim "+
		"icos_agent_id, or allow this to older agents by the setting UNKNOWN_AGENTS", agent)
}
