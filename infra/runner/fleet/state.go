package fleet

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/littoral-project/littoral/shared/durable"
)

// state is all that has happened to the fleet; the rest is its Plan. Entries of clusters and nodes that the Plan does
// not have stay as they are, for when it has them again.
type state struct {
	Clusters map[string]*clusterState `json:"clusters"` // by name
	Nodes    map[string]*nodeState    `json:"nodes"`    // by "cluster/node"
}

type clusterState struct {
	Cut    bool             `json:"cut,omitempty"`
	Copies map[string]*Copy `json:"copies,omitempty"` // by job id
	Tasks  map[string]*task `json:"tasks,omitempty"`  // by job id
}

// nodeState is what was done to a node; nil and missing mean as in the Plan.
type nodeState struct {
	Drained bool               `json:"drained,omitempty"`
	CPU     *float64           `json:"cpu,omitempty"`    // others' share, 0..1
	Memory  *float64           `json:"memory,omitempty"` // others' share, 0..1
	Score   *float64           `json:"sca,omitempty"`    // 0..100
	Watts   *float64           `json:"energy,omitempty"`
	Cores   *int               `json:"cores,omitempty"`
	RAM     *int64             `json:"ram,omitempty"`     // bytes
	Devices map[string]string  `json:"devices,omitempty"` // state by path
	Labels  map[string]*string `json:"labels,omitempty"`  // nil: taken off

	Telemetry string              `json:"telemetry,omitempty"` // tellsNode, tellsNothing; empty: everything
	Queues    map[string]queue    `json:"compss,omitempty"`    // by task signature
	Events    map[string]sighting `json:"events,omitempty"`    // by name

	Meter meter `json:"meter"`
}

// task is a job that an agent has taken, or is about to take, and has not reported the end of.
type task struct {
	Job     Job  `json:"job"`
	Taken   bool `json:"taken,omitempty"`   // the job manager has said that it is ours
	Applied bool `json:"applied,omitempty"` // done here; only the report is missing, so doing it again would do it twice
}

// tombstoneLife is how long a removed copy is remembered, so that a late creation cannot bring it back.
const tombstoneLife = 24 * time.Hour

func loadState(path string) (*state, error) {
	s := &state{Clusters: map[string]*clusterState{}, Nodes: map[string]*nodeState{}}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err == nil {
		err = json.Unmarshal(text, s)
	}
	if err != nil {
		return nil, fmt.Errorf("state of the fleet in %s: %w", path, err)
	}
	return s, nil
}

// complete gives every cluster and node of the plan an entry.
func (s *state) complete(p *Plan, now time.Time) {
	for _, c := range p.Clusters {
		at := s.Clusters[c.Name]
		if at == nil {
			at = &clusterState{}
			s.Clusters[c.Name] = at
		}
		if at.Copies == nil {
			at.Copies = map[string]*Copy{}
		}
		if at.Tasks == nil {
			at.Tasks = map[string]*task{}
		}
		for _, n := range c.Nodes {
			if key := c.Name + "/" + n.Name; s.Nodes[key] == nil {
				s.Nodes[key] = &nodeState{Meter: newMeter(n, now)}
			}
		}
	}
}

func (s *state) save(path string, now time.Time) error {
	for _, c := range s.Clusters {
		for id, copied := range c.Copies {
			if copied.Removed && now.Sub(copied.Since) > tombstoneLife {
				delete(c.Copies, id)
			}
		}
	}
	text, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("state of the fleet: %w", err)
	}
	return durable.WriteFile(path, text, 0o600)
}
