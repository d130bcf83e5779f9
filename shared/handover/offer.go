package handover

import "strings"

// Offer is what a controller could do for an application.
type Offer struct {
	Components int      `json:"components"`
	Placed     int      `json:"placed"` // of them
	Score      float64  `json:"score"`  // of the places, together
	Objective  float64  `json:"objective"`
	Bound      float64  `json:"bound"` // no plan there has a greater objective
	Price      float64  `json:"price"` // what one more unit of the capacity that is scarce there would be worth
	Missing    []string `json:"missing,omitempty"`
}

// Fits reports whether all of the application has a place there.
func (o Offer) Fits() bool { return o.Components > 0 && o.Placed == o.Components }

// Better reports whether o is to be preferred to other: it places more, or is better placed, or takes what is less scarce.
func (o Offer) Better(other Offer) bool {
	switch {
	case o.Placed != other.Placed:
		return o.Placed > other.Placed
	case o.Objective != other.Objective:
		return o.Objective > other.Objective
	}
	return o.Price < other.Price
}

// Why says for people why the application does not fit.
func (o Offer) Why() string {
	if len(o.Missing) == 0 {
		return "it has no place there"
	}
	return strings.Join(o.Missing, "; ")
}
