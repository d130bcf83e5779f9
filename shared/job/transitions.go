package job

import (
	"slices"

	"github.com/littoral-project/littoral/shared/problem"
)

// Move is something that happens to a job and may change its state; history names it.
type Move string

// The moves.
const (
	Submit    Move = "submitted"
	Place     Move = "placed"    // given a target by the matchmaker
	Promote   Move = "promoted"  // taken by an agent, or again by its owner after it was degraded
	TakeOver  Move = "takenover" // taken by another agent after the lease
	Progress  Move = "progressing"
	Finish    Move = "finished"
	Degrade   Move = "degraded"
	Remediate Move = "remediated" // a policy asks for a change
	Change    Move = "replaced"   // its content changed
	Displace  Move = "displaced"  // it lost or must leave its place
	Stop      Move = "stopped"    // asked to remove what runs
	Cancel    Move = "cancelled"  // stopped before anyone took it
	Restart   Move = "restarted"  // asked to run again
	GiveOver  Move = "handedover" // given to the agent that serves its place now, in the same state
)

// transitions is the whole state machine (contracts/icos.md §1.7, plus our leases and fencing): a move is allowed from
// the listed states and ends in the state to.
var transitions = map[Move]struct {
	from []State
	to   State
}{
	Place:     {[]State{Created}, Created},
	Promote:   {[]State{Created, Degraded}, Progressing},
	TakeOver:  {[]State{Progressing, Degraded}, Progressing},
	Progress:  {[]State{Progressing}, Progressing},
	Finish:    {[]State{Progressing, Degraded, Finished}, Finished},
	Degrade:   {[]State{Progressing, Finished, Degraded}, Degraded},
	Remediate: {[]State{Finished}, Created},
	Change:    {[]State{Created, Progressing, Finished, Degraded}, Created},
	Displace:  {[]State{Created, Progressing, Finished, Degraded}, Created},
	Stop:      {[]State{Created, Progressing, Finished, Degraded}, Created},
	Cancel:    {[]State{Created}, Finished},
	Restart:   {[]State{Created, Progressing, Finished, Degraded}, Created},
}

// move changes the state as the table says. The error is a Conflict that names the state.
func (j *Job) move(m Move) error {
	t, ok := transitions[m]
	if !ok || !slices.Contains(t.from, j.State) {
		return problem.New(problem.Conflict, "job %s is %s %s; it cannot be %s now", j.ID, j.State, j.Type, m)
	}
	j.State = t.to
	return nil
}
