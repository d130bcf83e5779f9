package application

import "github.com/littoral-project/littoral/shared/job"

// Filter narrows a listing; empty fields do not.
type Filter struct {
	job.Filter // selects the applications of which some job matches

	Health Health
}
