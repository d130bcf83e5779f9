package generator

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
)

// legacy changes a row into what CODECO's own generator would have written, with the oddities of its formulas, so that readers can
// be tried against them.
func (s *Simulation) legacy(row Row, n *Node, r *rand.Rand) Row {
	at := s.nodes[n.Index]
	free := float64(n.Memory) * (1 - at.memory)
	rising := 0.0
	switch steps := int(s.At.Sub(s.World.Options.Start) / s.step); { // it counts timestamps, so it only rises
	case steps >= 8:
		rising = 55
	case steps >= 5:
		rising = 35
	case steps >= 2:
		rising = 10
	}
	row["mem"] = number(free, 0) // what is free
	row["node_failure"] = "1"    // means that it is up
	if at.down > 0 {
		row["node_failure"] = "0"
	}
	row["node_energy"] = number(at.cpu*(0.02+0.02*r.Float64())+free*(0.0002+0.0002*r.Float64()), 2) // not normalised
	row["link_failure"] = number(rising, 0)
	row["node_net_failure"] = number(2*rising, 0)                                                 // adds itself
	row["ibw"] = number(1e6*(r.Float64()-0.4), 0)                                                 // may be negative
	row["latency"] = strconv.Itoa(r.IntN(5000))                                                   // a count of requests
	row["node_degree"] = strconv.Itoa(len(fmt.Sprintf("%q", strings.Split(row["link_id"], ",")))) // counts letters
	row["path_length"] = number(s.paths[n.Index]*0.9, 3)                                          // counts the node itself
	for _, column := range columns {
		if r.IntN(50) == 0 {
			row[column] = "NaN"
		}
	}
	return row
}
