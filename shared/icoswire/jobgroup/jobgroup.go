// Package jobgroup is an application in the JSON of ICOS: as it is answered, and as an update sends it back.
package jobgroup

import (
	"time"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/application"
	"github.com/littoral-project/littoral/shared/etag"
	"github.com/littoral-project/littoral/shared/icoswire"
	"github.com/littoral-project/littoral/shared/job"
)

// Answer is an application as it is answered: that of the contract with namespace, desired, status, message, health,
// version, judged and conditions added, and the warnings in the answer to a descriptor.
type Answer struct {
	ID          uuid.UUID           `json:"id"`
	CreatedAt   time.Time           `json:"created_at"`
	UpdatedAt   time.Time           `json:"updated_at"`
	Name        string              `json:"appName"`
	Description string              `json:"appDescription"`
	Namespace   string              `json:"namespace"`
	Desired     application.Desired `json:"desired"`
	Status      application.Status  `json:"status"`
	Message     string              `json:"message"`
	Health      application.Health  `json:"health,omitempty"`
	Version     int64               `json:"version"`
	Judged      int64               `json:"judged"`
	Owner       string              `json:"owner"`
	Away        *application.Away   `json:"away,omitempty"`
	Jobs        []*icoswire.Job     `json:"jobs"`
	Conditions  []job.Condition     `json:"conditions,omitempty"`
	Warnings    []string            `json:"warnings,omitempty"`
}

// Of returns the answer for an application.
func Of(a *application.Application) *Answer {
	status, message := a.Status()
	return &Answer{
		ID: a.ID, CreatedAt: a.CreatedAt, UpdatedAt: a.UpdatedAt, Name: a.Name, Description: a.Description, Namespace: a.Namespace,
		Desired: a.Desired, Status: status, Message: message, Health: a.Health(), Version: a.Version, Judged: a.HandledVersion,
		Owner: a.Owner, Away: a.Away, Jobs: icoswire.JobsOf(a.Jobs), Conditions: a.Conditions(), Warnings: a.Warnings,
	}
}

// ListOf returns the answer for a list of applications, which is never nil.
func ListOf(apps []*application.Application) []*Answer {
	out := make([]*Answer, len(apps))
	for i, a := range apps {
		out[i] = Of(a)
	}
	return out
}

// ETag names the version, which only changes with the descriptor: whoever changes an application need not know how its
// jobs fare.
func (g *Answer) ETag() string { return etag.Of(g.Version) }
