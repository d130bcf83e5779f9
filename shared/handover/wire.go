package handover

import (
	"fmt"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/problem"
)

// The types of the CloudEvents between controllers.
const (
	Transferred = "dev.littoral.handover.transferred.v1" // giver to receiver: accept this application
	LetGo       = "dev.littoral.handover.letgo.v1"       // giver to receiver: it is released, so that a lease can be had
	Claimed     = "dev.littoral.handover.claimed.v1"     // receiver to giver: leases are asked for, and what the applications do
)

// EventID is that of an event about the epoch of an application: the same however often it is sent.
func EventID(typ string, id uuid.UUID, epoch int64) string {
	return fmt.Sprintf("%s/%s/%d", typ, id, epoch)
}

// Transfer is the data of Transferred, and of LetGo, which has no content.
type Transfer struct {
	Epoch   int64    `json:"epoch"`
	Content *Content `json:"application,omitempty"`
}

// Check refuses what no giver sends with an event of the type.
func (t *Transfer) Check(typ string) error {
	var faults problem.Faults
	if t.Epoch < 1 {
		faults.Add("data.epoch", 0, "is not positive")
	}
	if typ == Transferred && t.Content == nil {
		faults.Add("data.application", 0, "is missing")
	}
	if err := faults.Err("the application cannot be accepted"); err != nil || typ != Transferred {
		return err
	}
	return t.Content.Check()
}

// Claims are those of a receiver, the data of Claimed.
type Claims struct {
	Claims []Claim `json:"claims"`
}

// Check refuses more than one call may hold, and states that no receiver claims in.
func (c *Claims) Check() error {
	var faults problem.Faults
	if len(c.Claims) > MostListed {
		faults.Add("data.claims", 0, "are more than %d", MostListed)
	}
	for i, claim := range c.Claims {
		if claim.State != Accepted && claim.State != Held && claim.State != Returning {
			faults.Add("data.claims", 0, "entry %d: the state is not accepted, held or returning", i)
		}
		if claim.Content != nil {
			if err := claim.Content.Check(); err != nil {
				faults.Add("data.claims", 0, "entry %d: the application is incomplete", i)
			}
		}
	}
	return faults.Err("the claims are not understood")
}

// Leases answer them, in their order.
type Leases struct {
	Leases []Lease `json:"leases"`
}
