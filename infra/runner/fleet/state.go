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

// state is everything that has happened to the fleet since its Plan. Entries for clusters and nodes that are not in the
// Plan are kept, in case they return.
type state struct {
	Clusters map[string]*clusterState `json:"clusters"`          // by name
	Nodes    map[string]*nodeState    `json:"nodes"`             // by "cluster/node"
	Failing  map[string]failing       `json:"failing,omitempty"` // by "component" or "application/component"
}

type clusterState struct {
	Cut    bool             `json:"cut,omitempty"`
	Copies map[string]*Copy `json:"copies,omitempty"` // by job id
	Tasks  map[string]*task `json:"tasks,omitempty"`  // by job id
}

// nodeState is what was set for a node; nil and missing mean the value of the Plan.
type nodeState struct {
	Drained bool               `json:"drained,omitempty"`
	CPU     *float64           `json:"cpu,omitempty"`    // others' share, 0..1
	Memory  *float64           `json:"memory,omitempty"` // others' share, 0..1
	Score   *float64           `json:"sca,omitempty"`    // 0..100
	Watts   *float64           `json:"energy,omitempty"`
	Cores   *int               `json:"cores,omitempty"`
	RAM     *int64             `json:"ram,omitempty"`     // bytes
	Devices map[string]string  `json:"devices,omitempty"` // state by path
	Labels  map[string]*string `json:"labels,omitempty"`  // nil: removed

	Telemetry string              `json:"telemetry,omitempty"` // tellsNode, tellsNothing; empty: everything
	Queues    map[string]queue    `json:"compss,omitempty"`    // by task signature
	Events    map[string]sighting `json:"events,omitempty"`    // by name

	Meter meter `json:"meter"`
}

// task is a job that an agent has taken or is about to take, and whose end it has not reported.
type task struct {
	Job     Job  `json:"job"`
	Taken   bool `json:"taken,omitempty"`   // the job manager has confirmed that the agent owns it
	Applied bool `json:"applied,omitempty"` // carried out, not to be repeated; only the report is missing
}

// tombstoneLife is how long a removed copy is remembered, so that a late creation cannot restore it.
const tombstoneLife = 24 * time.Hour

func loadState(path string) (*state, error) {
	s := &state{Clusters: map[string]*clusterState{}, Nodes: map[string]*nodeState{}, Failing: map[string]failing{}}
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
