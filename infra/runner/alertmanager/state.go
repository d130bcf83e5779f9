package alertmanager

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/prometheus/common/model"

	"github.com/littoral-project/littoral/shared/durable"
)

// settleTime is how long after a restart an alert may be without a new notice before it is resolved: Prometheus forgets
// alerts that stopped firing meanwhile, and would never report their end.
const settleTime = 20 * time.Second

// savedAlert is an alert that was reported as firing.
type savedAlert struct {
	*model.Alert

	Valid time.Duration `json:"valid"` // for how long without a new notice; longer for a rule that is rarely evaluated
}

// save stores what the webhook believes to be firing.
func (n *Notifier) save() {
	if n.options.File == "" {
		return
	}
	n.saving.Lock()
	defer n.saving.Unlock()
	open := []savedAlert{}
	now := n.now()
	n.mu.Lock()
	for _, key := range slices.Sorted(maps.Keys(n.groups)) {
		for _, a := range n.groups[key].open() {
			open = append(open, savedAlert{a, a.EndsAt.Sub(now)})
		}
	}
	n.mu.Unlock()
	body, err := json.Marshal(open)
	if err == nil {
		err = durable.WriteFile(n.options.File, body, 0o600)
	}
	if err != nil {
		n.log.Error("what was said to fire is not kept", "file", n.options.File, "error", err.Error())
	}
}

// restore loads what the former process reported as firing. It is not sent again before the repeat is due.
func (n *Notifier) restore() error {
	if n.options.File == "" {
		return nil
	}
	body, err := os.ReadFile(n.options.File)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var open []savedAlert
	if err == nil {
		err = json.Unmarshal(body, &open)
	}
	if err != nil {
		return fmt.Errorf("alerts: %w", err)
	}
	now := n.now()
	alerts := make([]*model.Alert, len(open))
	for i, a := range open {
		a.EndsAt = now.Add(max(settleTime, a.Valid))
		alerts[i] = a.Alert
	}
	n.receive(alerts)
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, g := range n.groups {
		g.mu.Lock()
		firing, _ := split(slices.Collect(maps.Values(g.alerts)), now)
		g.said = &said{now, firing, nil}
		g.mu.Unlock()
	}
	return nil
}
