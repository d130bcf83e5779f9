package prometheus

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"time"

	client "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/notifier"
	"github.com/prometheus/prometheus/rules"
)

// Alert is an alert as Prometheus sends it to Alertmanagers: from StartsAt to EndsAt, which lies in the future while it
// fires and is moved on in time.
type Alert = notifier.Alert

// RuleOptions say which rules are evaluated and who hears of their alerts.
type RuleOptions struct {
	Dir      string        // of the rule files, *.yaml and *.yml
	Interval time.Duration // between two evaluations of a group that has none of its own; 0 = DefaultInterval
	URL      string        // under which people reach this Prometheus; alerts link to it

	// Send takes alerts. Evaluation waits for it, so it must not wait itself.
	Send func(alerts ...*Alert)
}

// DefaultInterval suits a fleet that reports every two seconds.
const DefaultInterval = 2 * time.Second

const (
	// resend is how often a firing alert is sent again. It ends by itself when it is not sent for four times as long,
	// as after its rule was removed.
	resend = 5 * time.Second

	outage = time.Hour        // of this process, over which an alert's "for" still counts
	grace  = 10 * time.Second // least "for" that is resumed after that
)

// Evaluate begins to evaluate the rules with Prometheus' own rule manager, which keeps the alerts' state in the storage
// over a restart. It ends with Close. The error says that a rule file cannot be read; the evaluation has begun all the
// same, and a Reload takes the files up once they are mended.
func (s *Server) Evaluate(o RuleOptions) error {
	o.Interval = cmp.Or(o.Interval, DefaultInterval)
	s.evaluated = o
	s.rules = rules.NewManager(&rules.ManagerOptions{
		Context: context.Background(), QueryFunc: rules.EngineQueryFunc(s.engine, s.db), Appendable: s.db, Queryable: s.db,
		NotifyFunc: rules.SendAlerts(sender(o.Send), o.URL),
		Logger:     s.log, Registerer: client.NewRegistry(), Parser: s.queries,
		OutageTolerance: outage, ForGracePeriod: grace, ResendDelay: resend,
	})
	err := s.Reload()
	go s.rules.Run()
	return err
}

type sender func(alerts ...*Alert)

func (s sender) Send(alerts ...*Alert) { s(alerts...) }

// Reload reads the rule files again. Groups that have not changed keep their state; when a file cannot be read, the
// former rules stay.
func (s *Server) Reload() error {
	s.reloading.Lock()
	defer s.reloading.Unlock()
	var files []string
	for _, pattern := range []string{"*.yaml", "*.yml"} {
		found, err := filepath.Glob(filepath.Join(s.evaluated.Dir, pattern))
		if err != nil {
			return fmt.Errorf("rule files: %w", err)
		}
		files = append(files, found...)
	}
	slices.Sort(files)
	return s.rules.Update(s.evaluated.Interval, files, labels.EmptyLabels(), s.evaluated.URL, nil)
}

// ReloadHandler answers POST as Prometheus' /-/reload does.
func (s *Server) ReloadHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if err := s.Reload(); err != nil {
			http.Error(w, fmt.Sprintf("failed to reload config: %s", err), http.StatusInternalServerError)
		}
	})
}

// RuleGroups and AlertingRules are for the API; there are none before Evaluate.
func (s *Server) RuleGroups() []*rules.Group {
	if s.rules == nil {
		return nil
	}
	return s.rules.RuleGroups()
}

// AlertingRules returns the alerting rules of all groups.
func (s *Server) AlertingRules() []*rules.AlertingRule {
	if s.rules == nil {
		return nil
	}
	return s.rules.AlertingRules()
}
