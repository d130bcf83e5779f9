package alertmanager

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/common/model"
)

// group is the alerts that share a message. It follows Alertmanager's aggregation group and notification log.
type group struct {
	n      *Notifier
	labels model.LabelSet

	mu     sync.Mutex
	alerts map[model.Fingerprint]*model.Alert
	said   *said // nil before the first message
}

// said is what the webhook was told last.
type said struct {
	at               time.Time
	firing, resolved map[model.Fingerprint]bool
}

func newGroup(n *Notifier, labels model.LabelSet) *group {
	return &group{n: n, labels: labels, alerts: map[model.Fingerprint]*model.Alert{}}
}

// put takes the latest notice of an alert. One that starts before the last has ended is the same episode; Alertmanager
// merges them too, since a restarted Prometheus reports a firing alert with a later start.
func (g *group) put(a *model.Alert) {
	g.mu.Lock()
	defer g.mu.Unlock()
	last := g.alerts[a.Fingerprint()]
	if last != nil && a.StartsAt.After(last.StartsAt) && a.StartsAt.Before(last.EndsAt) {
		a.StartsAt = last.StartsAt
	}
	g.alerts[a.Fingerprint()] = a
}

// run sends messages until nothing of the group is left.
func (g *group) run() {
	timer := time.NewTimer(GroupWait)
	defer timer.Stop()
	for {
		select {
		case <-g.n.ctx.Done():
			return
		case <-timer.C:
		}
		timer.Reset(GroupInterval)
		g.flush()
		if g.forgotten() {
			return
		}
	}
}

// flush sends a message if there is news, or the repeat is due. After a failure everything is still news.
func (g *group) flush() {
	now := g.n.now()
	alerts := g.snapshot(now)
	firing, resolved := split(alerts, now)
	if !g.isNews(firing, resolved, now) {
		g.drop(alerts, now)
		return
	}
	if err := g.n.post(g, alerts, now); err != nil {
		if g.n.ctx.Err() == nil {
			g.n.log.Warn(
				"the webhook did not take alerts; they are sent again",
				"group",
				g.labels.String(),
				"error",
				err.Error(),
			)
		}
		return
	}
	g.mu.Lock()
	g.said = &said{now, firing, resolved}
	g.mu.Unlock()
	g.drop(alerts, now)
	g.n.save()
}

// snapshot copies the alerts in a fixed order, oldest first. Firing ones have no end, so that they do not resolve while
// the message is on its way.
func (g *group) snapshot(now time.Time) []*model.Alert {
	g.mu.Lock()
	defer g.mu.Unlock()
	list := make([]*model.Alert, 0, len(g.alerts))
	for _, a := range g.alerts {
		c := *a
		if !c.ResolvedAt(now) {
			c.EndsAt = time.Time{}
		}
		list = append(list, &c)
	}
	slices.SortFunc(list, func(a, b *model.Alert) int {
		if d := a.StartsAt.Compare(b.StartsAt); d != 0 {
			return d
		}
		if a.Labels.Before(b.Labels) {
			return -1
		}
		return 1
	})
	return list
}

func split(alerts []*model.Alert, now time.Time) (firing, resolved map[model.Fingerprint]bool) {
	firing, resolved = map[model.Fingerprint]bool{}, map[model.Fingerprint]bool{}
	for _, a := range alerts {
		if a.ResolvedAt(now) {
			resolved[a.Fingerprint()] = true
		} else {
			firing[a.Fingerprint()] = true
		}
	}
	return firing, resolved
}

// isNews decides like Alertmanager's deduplication.
func (g *group) isNews(firing, resolved map[model.Fingerprint]bool, now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch s := g.said; {
	case s == nil:
		return len(firing) > 0 // an alert that resolved before it was reported needs no message
	case !subset(firing, s.firing):
		return true
	case len(firing) == 0:
		return len(s.firing) > 0 && len(resolved) > 0
	case !subset(resolved, s.resolved):
		return true
	default:
		return s.at.Add(Repeat).Before(now)
	}
}

func subset(part, whole map[model.Fingerprint]bool) bool {
	for f := range part {
		if !whole[f] {
			return false
		}
	}
	return true
}

// drop forgets resolved alerts that have not changed since they were copied.
func (g *group) drop(alerts []*model.Alert, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, a := range alerts {
		f := a.Fingerprint()
		have := g.alerts[f]
		if a.ResolvedAt(now) && have != nil && have.StartsAt.Equal(a.StartsAt) && have.EndsAt.Equal(a.EndsAt) {
			delete(g.alerts, f)
		}
	}
}

// forgotten removes an empty group from the notifier, unless an alert came in the meantime.
func (g *group) forgotten() bool {
	g.n.mu.Lock()
	defer g.n.mu.Unlock()
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.alerts) > 0 {
		return false
	}
	delete(g.n.groups, g.labels.String())
	return true
}

// open returns the alerts that the webhook believes to be firing.
func (g *group) open() []*model.Alert {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.said == nil {
		return nil
	}
	var list []*model.Alert
	for _, f := range slices.Sorted(maps.Keys(g.said.firing)) {
		if a := g.alerts[f]; a != nil {
			list = append(list, a)
		}
	}
	return list
}
