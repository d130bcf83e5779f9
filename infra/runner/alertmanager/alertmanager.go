// Package alertmanager tells a webhook which alerts fire, as an Alertmanager with one route and one webhook receiver
// does: the same body, grouping, repeats, resolved alerts and fingerprints.
//
// It is small on purpose. Alertmanager's own dispatcher brings 127 packages more (a gossip protocol, Kafka, gRPC, chat
// clients), which a laptop host has no use for; there are no silences, inhibitions, peers or templates here. The types
// of the body are Alertmanager's.
package alertmanager

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/common/model"

	"github.com/littoral-project/littoral/infra/runner/prometheus"
)

// Options of a Notifier.
type Options struct {
	Webhook string       // URL
	Client  *http.Client // adds the credentials; its Timeout bounds one attempt
	URL     string       // a link to the sender, for people
	File    string       // keeps the alerts reported as firing over a restart; "" = they are forgotten

	Log *slog.Logger     // nil = slog.Default
	Now func() time.Time // nil = time.Now
}

// The pace of messages, for a laptop. The defaults of an Alertmanager are 30 s, 5 min and 4 h.
const (
	GroupWait     = 200 * time.Millisecond // from the first alert of a group to its message
	GroupInterval = 2 * time.Second        // between two messages of a group, and between failed attempts
	Repeat        = 2 * time.Minute        // after which an alert that still fires is sent again
)

// Receiver is what the webhook is called in the messages.
const Receiver = "littoral"

// Notifier takes alerts and sends messages.
type Notifier struct {
	options Options
	log     *slog.Logger
	now     func() time.Time

	ctx    context.Context // of messages, which belong to no call
	cancel context.CancelFunc
	all    sync.WaitGroup

	mu     sync.Mutex
	closed bool
	groups map[string]*group

	saving sync.Mutex
}

// New returns a notifier. An alert that the former process reported as firing, and that is not reported again, is
// resolved in time.
func New(o Options) (*Notifier, error) {
	if o.Webhook == "" || o.Client == nil {
		return nil, errors.New("alertmanager: a webhook and a client are needed")
	}
	n := &Notifier{options: o, log: cmp.Or(o.Log, slog.Default()), now: o.Now, groups: map[string]*group{}}
	if n.now == nil {
		n.now = time.Now
	}
	n.ctx, n.cancel = context.WithCancel(context.Background())
	return n, n.restore()
}

// Send takes alerts from Prometheus' rule manager. It never waits for the webhook.
func (n *Notifier) Send(alerts ...*prometheus.Alert) {
	taken := make([]*model.Alert, len(alerts))
	for i, a := range alerts {
		taken[i] = &model.Alert{
			Labels: labelSet(a.Labels.Map()), Annotations: labelSet(a.Annotations.Map()),
			StartsAt: a.StartsAt, EndsAt: a.EndsAt, GeneratorURL: a.GeneratorURL,
		}
	}
	n.receive(taken)
}

func (n *Notifier) receive(alerts []*model.Alert) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return
	}
	for _, a := range alerts {
		labels := groupLabels(a)
		key := labels.String()
		g := n.groups[key]
		if g == nil {
			if a.ResolvedAt(n.now()) {
				continue // its firing was never reported
			}
			g = newGroup(n, labels)
			n.groups[key] = g
			n.all.Go(g.run)
		}
		g.put(a)
	}
}

// groupLabels returns the labels that the alerts of one message share: their name.
func groupLabels(a *model.Alert) model.LabelSet {
	labels := model.LabelSet{}
	if name, ok := a.Labels[model.AlertNameLabel]; ok {
		labels[model.AlertNameLabel] = name
	}
	return labels
}

// Close ends all messages, those under way as well, and waits for that.
func (n *Notifier) Close() error {
	n.mu.Lock()
	n.closed = true
	n.mu.Unlock()
	n.cancel()
	n.all.Wait()
	return nil
}

func labelSet(from map[string]string) model.LabelSet {
	set := make(model.LabelSet, len(from))
	for name, value := range from {
		set[model.LabelName(name)] = model.LabelValue(value)
	}
	return set
}
