package job

import (
	"fmt"
	"slices"
	"strings"

	"github.com/littoral-project/littoral/shared/problem"
)

// Move is something that happens to a job and may change its state; history names it.
type Move string

// The moves.
const (
	Submit           Move = "submitted"
	CleanUp          Move = "cleanup" // the removal of a copy that a job left behind was asked for
	Wait             Move = "waiting"
	Place            Move = "placed"
	Promote          Move = "promoted"
	TakeOver         Move = "takenover"
	Adopt            Move = "adopted"
	GiveBack         Move = "returned"
	GiveOver         Move = "handedover"
	Progress         Move = "progressing"
	Finish           Move = "finished"
	Degrade          Move = "degraded"
	Notice           Move = "observed"
	MarkMisplaced    Move = "misplaced"
	ReleaseMisplaced Move = "kept"
	Remediate        Move = "remediated"
	Change           Move = "replaced"
	Instruct         Move = "instructed"
	Require          Move = "required"
	Displace         Move = "displaced"
	Restart          Move = "restarted"
	Stop             Move = "stopped"
	Cancel           Move = "cancelled"
	Forget           Move = "removed"
)

// Event is how history calls the move.
func (m Move) Event() string { return "job." + string(m) }

const (
	none  State = "" // before a job is stored
	stays State = "" // the move leaves the state as it is
)

var (
	anyState = []State{Created, Progressing, Finished, Degraded}
	newborn  = []State{none}
)

// transition is a move that is allowed from some states, and where it leads.
type transition struct {
	move Move
	from []State
	to   State
	what string // what happens, and who does it
}

// transitions is the whole state machine (shared/docs/contracts.md §1.7, plus our leases and fencing). Nothing else assigns a
// state. The page shared/docs/states.md draws it.
var transitions = []transition{
	{Submit, newborn, Created, "a descriptor asks for the component"},
	{CleanUp, newborn, Created, "a copy was left behind, and is to be removed by its owner"},
	{Wait, []State{Created}, stays, "the matchmaker found no place, and says why"},
	{Place, []State{Created}, Created, "the matchmaker chose a place"},
	{Promote, []State{Created, Degraded}, Progressing, "an agent took it, or its owner tries again"},
	{TakeOver, []State{Progressing, Degraded}, Progressing, "another agent took it after the lease of the former one"},
	{Adopt, []State{Created, Progressing, Degraded}, Progressing, "its agent does not serve the place and left it alone; one who does took it"},
	{GiveBack, []State{Progressing}, Created, "its agent does not want to create it; another one may"},
	{GiveOver, anyState, stays, "another agent serves the place now"},
	{Progress, []State{Progressing}, Progressing, "the agent reports that it is at work"},
	{Finish, []State{Progressing, Degraded, Finished}, Finished, "the agent reports success, or what was wrong is over"},
	{Degrade, []State{Progressing, Finished, Degraded}, Degraded, "the agent reports a failure, or it runs badly, or in the wrong place"},
	{Notice, anyState, stays, "other conditions were seen"},
	{MarkMisplaced, anyState, stays, "it should leave its place and fits nowhere else, while it is not finished"},
	{ReleaseMisplaced, anyState, stays, "it may stay where it is, and something else is wrong or under way"},
	{Remediate, []State{Finished, Degraded}, Created, "a violated policy asks for a change; of a degraded one only if nothing but its place is wrong"},
	{Change, anyState, Created, "its content changed, or its agent carried out former content"},
	{Instruct, anyState, stays, "its content changed while it is stopped"},
	{Require, anyState, stays, "its requirements changed, and its content did not"},
	{Displace, anyState, Created, "it lost its place or must leave it"},
	{Restart, anyState, Created, "a stopped application is to run again"},
	{Stop, anyState, Created, "what runs is to be removed"},
	{Cancel, []State{Created}, Finished, "it was stopped before anyone took it"},
	{Forget, anyState, stays, "it was deleted, with nothing of it left anywhere"},
}

// transitionOf returns the transition of the move.
func transitionOf(m Move) transition {
	i := slices.IndexFunc(transitions, func(t transition) bool { return t.move == m })
	if i < 0 {
		return transition{move: m}
	}
	return transitions[i]
}

// leads reports whether the move may lead from one state to the other.
func (t transition) leads(from, to State) bool {
	return slices.Contains(t.from, from) && (to == t.to || t.to == stays && to == from)
}

// start gives a job its first state.
func (j *Job) start() { j.State = Created }

// move changes the state as the table says and returns the former one. The error is a Conflict that names the state.
func (j *Job) move(m Move) (from State, err error) {
	t, from := transitionOf(m), j.State
	if !slices.Contains(t.from, from) {
		return from, j.cannot(m)
	}
	if t.to != stays {
		j.State = t.to
	}
	return from, nil
}

func (j *Job) cannot(m Move) error {
	return problem.New(problem.Conflict, "job %s is %s %s; it cannot be %s now", j.ID, j.State, j.Type, m)
}

// Drawing is the state machine as a Mermaid diagram, without the moves that leave the state as it is.
func Drawing() string {
	arrows := map[[2]State][]string{}
	var order [][2]State
	for _, t := range transitions {
		for _, from := range t.from {
			if t.to == stays || from == t.to {
				continue
			}
			way := [2]State{from, t.to}
			if arrows[way] == nil {
				order = append(order, way)
			}
			arrows[way] = append(arrows[way], string(t.move))
		}
	}
	var b strings.Builder
	b.WriteString("stateDiagram-v2\n")
	for _, way := range order {
		from := string(way[0])
		if way[0] == none {
			from = "[*]"
		}
		fmt.Fprintf(&b, "    %s --> %s: %s\n", from, way[1], strings.Join(arrows[way], ", "))
	}
	return b.String()
}

// Moves is the table as Markdown.
func Moves() string {
	var b strings.Builder
	b.WriteString("| history | from | to | what happened |\n| --- | --- | --- | --- |\n")
	for _, t := range transitions {
		to := string(t.to)
		if t.to == stays {
			to = "the same"
		}
		from := make([]string, 0, len(t.from))
		for _, s := range t.from {
			from = append(from, string(s))
		}
		names := strings.Join(from, ", ")
		switch {
		case len(t.from) == len(anyState):
			names = "any"
		case t.from[0] == none:
			names = "new"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", t.move.Event(), names, to, t.what)
	}
	return b.String()
}
