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

// Alert is an alert as Prometheus sends it to Alertmanagers. While it fires, EndsAt lies in the future and is moved on
// with each notice.
type Alert = notifier.Alert

// RuleOptions define which rules are evaluated and where their alerts go.
type RuleOptions struct {
	Dir      string        // of the rule files, *.yaml and *.yml
	Own      string        // one more rule file; "" = none
	Interval time.Duration // between two evaluations of a group that sets none; 0 = DefaultInterval
	URL      string        // of this Prometheus for people; alerts link to it

	// Send receives alerts. The evaluation waits for it, so it must return at once.
	Send func(alerts ...*Alert)
}

// DefaultInterval suits a fleet that reports every two seconds.
const DefaultInterval = 2 * time.Second

const (
	// resend is how often a firing alert is sent again. If it is not sent for four times as long, for instance because
	// its rule was removed, it ends by itself.
	resend = 5 * time.Second

	outage = time.Hour        // the longest downtime of this process after which the "for" of an alert continues
	grace  = 10 * time.Second // an alert with a shorter "for" begins it again after a restart
)

// Evaluate starts the evaluation of the rules with Prometheus' own rule manager, which keeps the state of alerts in the
// storage over a restart. Close ends it. An error means that a rule file cannot be read; the evaluation has started
// anyway, and Reload loads the files once they are corrected.
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

// Reload reads the rule files again. Unchanged groups keep their state; if a file cannot be read, the former rules
// stay.
func (s *Server) Reload() error {
	s.reloading.Lock()
	defer s.reloading.Unlock()
	var files []string
	if s.evaluated.Own != "" {
		files = append(files, s.evaluated.Own)
	}
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

// ReloadHandler serves POST like Prometheus' /-/reload.
func (s *Server) ReloadHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if err := s.Reload(); err != nil {
			http.Error(w, fmt.Sprintf("failed to reload config: %s", err), http.StatusInternalServerError)
		}
	})
}

// RuleGroups and AlertingRules implement an interface of the API; before Evaluate they return nothing.
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
