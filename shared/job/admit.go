package job

import (
	"context"
	"fmt"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

const selectKnownAgent = `select exists (select from nodes where agent = $1)`

// Admit refuses a caller whose token is bound to no agent and who acts as one that telemetry does not know: nothing would
// keep it from the jobs of any cluster. The setting UNKNOWN_AGENTS lets it. A name that none can have is left to whoever
// takes it, and says which field is wrong. The error is Forbidden.
func (s Settings) Admit(ctx context.Context, q store.Querier, agent string) error {
	if s.UnknownAgents || agent == "" || len(agent) > maxName || auth.From(ctx).AgentID != "" {
		return nil
	}
	var known bool
	if err := q.QueryRow(ctx, selectKnownAgent, agent).Scan(&known); err != nil {
		return fmt.Errorf("look for the agent: %w", err)
	}
	if !known {
		return problem.New(problem.Forbidden, "telemetry knows no agent %q, and the token is bound to none: give it the claim "+
			"icos_agent_id, or allow this to older agents by the setting UNKNOWN_AGENTS", agent)
	}
	return nil
}
