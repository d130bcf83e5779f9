package job

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/littoral-project/littoral/shared/appmodel"
)

// Replicas numbers the replicas of a component as their jobs. A replica that asks for the node labels of a stored job
// keeps the number of that job, wherever it stands in the list, so that the others stay where they are when one is
// taken out. Each of the rest takes the number of a live job that is left over, or else the lowest free number.
func Replicas(c *appmodel.Component, stored []*Job) []appmodel.Replica {
	byLabels := map[string][]*Job{}
	own := ofComponent(c.Name, stored)
	for _, j := range own {
		labels := fmt.Sprint(j.Instruction.Labels)
		byLabels[labels] = append(byLabels[labels], j)
	}
	replicas := c.Replicas()
	taken := map[int]bool{}
	var open []*appmodel.Replica
	for i := range replicas {
		r := &replicas[i]
		labels := fmt.Sprint(r.Labels)
		same := byLabels[labels]
		if len(same) == 0 {
			open = append(open, r)
			continue
		}
		r.Index, byLabels[labels] = same[0].Replica, same[1:]
		taken[r.Index] = true
	}
	var numbers []int
	for _, j := range own {
		if j.Live() && !taken[j.Replica] {
			numbers = append(numbers, j.Replica)
		}
	}
	free := 0
	for _, r := range open {
		if len(numbers) > 0 {
			r.Index, numbers = numbers[0], numbers[1:]
		} else {
			for taken[free] {
				free++
			}
			r.Index = free
		}
		taken[r.Index] = true
	}
	return replicas
}

// ofComponent returns the jobs of the component without clean-ups, live ones first, then by number.
func ofComponent(name string, jobs []*Job) []*Job {
	own := slices.DeleteFunc(slices.Clone(jobs), func(j *Job) bool { return j.Component != name || j.Cleans != nil })
	slices.SortFunc(own, func(a, b *Job) int {
		switch {
		case a.Live() == b.Live():
			return cmp.Compare(a.Replica, b.Replica)
		case a.Live():
			return -1
		}
		return 1
	})
	return own
}

// ReplicaName is how a replica is shown: "web", or "web/1" where there are several.
func ReplicaName(component string, replica int) string {
	if replica == 0 {
		return component
	}
	return component + "/" + strconv.Itoa(replica)
}
