package handover

import "github.com/littoral-project/littoral/shared/problem"

// Transfer is an application on its way to another controller.
type Transfer struct {
	Controller string  `json:"controller"` // the giver
	Epoch      int64   `json:"epoch"`
	Content    Content `json:"application"`
}

// Check refuses what no giver sends.
func (t *Transfer) Check() error {
	if t.Epoch < 1 {
		var faults problem.Faults
		faults.Add("epoch", 0, "is not positive")
		return faults.Err("the application cannot be accepted")
	}
	return t.Content.Check()
}

// Claims are those of a receiver.
type Claims struct {
	Controller string  `json:"controller"` // the receiver
	Claims     []Claim `json:"claims"`
}

// Check refuses more than one call may hold, and states that no receiver claims in.
func (c *Claims) Check() error {
	var faults problem.Faults
	if len(c.Claims) > MostListed {
		faults.Add("claims", 0, "are more than %d", MostListed)
	}
	for i, claim := range c.Claims {
		if claim.State != Accepted && claim.State != Held && claim.State != Returning {
			faults.Add("claims", 0, "entry %d: the state is not accepted, held or returning", i)
		}
		if claim.Content != nil {
			if err := claim.Content.Check(); err != nil {
				faults.Add("claims", 0, "entry %d: the application is incomplete", i)
			}
		}
	}
	return faults.Err("the claims are not understood")
}

// Leases answer them, in their order.
type Leases struct {
	Leases []Lease `json:"leases"`
}
