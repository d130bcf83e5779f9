package policies

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/policy/registry"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

// Alert is one alert in the message of a webhook, with Alertmanager's names.
type Alert struct {
	Status      string            `json:"status"` // firing or resolved
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	StartsAt    time.Time         `json:"startsAt"`
	EndsAt      time.Time         `json:"endsAt"` // of a resolved alert
	Fingerprint string            `json:"fingerprint"`
}

// The states of an alert.
const (
	Firing   = "firing"
	Resolved = "resolved"
)

// Received counts the alerts of a message.
type Received struct {
	New      int `json:"new"`      // announced
	Repeated int `json:"repeated"` // known already
	Ignored  int `json:"ignored"`  // about no policy of ours
}

const (
	// The activation of the policy (since) is part of the key. A notice that comes in while the policy is activated
	// again belongs to the former activation and is ignored; the next notice of the same alert must then not look like
	// a repeat.
	//
	// A notice is no repeat either if it contradicts a later one: firing, clearly after the end was heard, or resolved,
	// after it was heard firing again. received_at is when the notice was last new.
	insertAlert = `insert into policy_alerts as heard
(policy_id, fingerprint, starts_at, status, known, labels, since, received_at) values ($1, $2, $3, $4, $5, $6, $7, $8)
on conflict (policy_id, fingerprint, starts_at, status, since) do update set received_at = excluded.received_at
where exists (select from policy_alerts other
  where other.policy_id = heard.policy_id and other.fingerprint = heard.fingerprint and other.since = heard.since
  and other.status <> heard.status and case heard.status
    when 'firing' then other.received_at >= heard.received_at - $9::interval
      and other.received_at < excluded.received_at - $9::interval
    else other.starts_at <= greatest(heard.starts_at, $10) and other.received_at > heard.received_at end)`
	selectSince = `select coalesce((state ->> 'since')::timestamptz, '0001-01-01 00:00:00Z') from policies
where id = $1 and deleted_at is null`

	forgetAlerts = `delete from policy_alerts where policy_id = $1`
)

// Receive records the alerts and emits an event for each new one. Alerts that name no policy of ours are recorded once,
// without their labels, and have no effect.
func Receive(ctx context.Context, tx *store.Tx, alerts []Alert) (Received, error) {
	var r Received
	at := now()
	for _, a := range ordered(alerts) {
		id, known := a.policy()
		labels := a.Labels
		if !known {
			labels = map[string]string{}
		}
		var since time.Time
		if known {
			err := tx.QueryRow(ctx, selectSince, id).Scan(&since)
			if known = !errors.Is(err, pgx.ErrNoRows); known && err != nil {
				return r, fmt.Errorf("find policy: %w", err)
			}
		}
		tag, err := tx.Exec(ctx, insertAlert, policyKey(a), a.Fingerprint, a.StartsAt, a.Status, known, labels, since, at,
			registry.Lag, a.EndsAt)
		if err != nil {
			return r, fmt.Errorf("record alert: %w", err)
		}
		switch {
		case !known:
			r.Ignored++
		case tag.RowsAffected() == 0:
			r.Repeated++
		default:
			r.New++
			err := tx.Emit(ctx, events.AlertReceived, id.String(), events.Alert{
				Policy: id, Fingerprint: a.Fingerprint, Firing: a.Status == Firing, StartsAt: a.StartsAt,
				EndsAt: a.EndsAt, ReceivedAt: at, Since: since, Labels: a.Labels, Annotations: a.Annotations,
			})
			if err != nil {
				return r, err
			}
		}
	}
	return r, nil
}

// ordered sorts the alerts by key, so that two webhooks at a time do not deadlock, and gives a fingerprint to those
// without one, as older senders leave it out.
func ordered(alerts []Alert) []Alert {
	alerts = slices.Clone(alerts)
	for i := range alerts {
		if alerts[i].Fingerprint == "" {
			alerts[i].Fingerprint = fingerprint(alerts[i].Labels)
		}
		alerts[i].StartsAt = alerts[i].StartsAt.UTC().Truncate(time.Microsecond)
	}
	slices.SortStableFunc(alerts, func(a, b Alert) int {
		return slices.Compare(
			[]string{policyKey(a), a.Fingerprint, a.StartsAt.Format(time.RFC3339Nano), a.Status},
			[]string{policyKey(b), b.Fingerprint, b.StartsAt.Format(time.RFC3339Nano), b.Status})
	})
	return alerts
}

// policy returns the policy that the alert names.
func (a *Alert) policy() (id uuid.UUID, named bool) {
	id, err := uuid.Parse(a.Annotations[registry.AnnotationID])
	return id, err == nil
}

// policyKey is the id of the alert's policy in canonical form; "" if it names none.
func policyKey(a Alert) string {
	if id, named := a.policy(); named {
		return id.String()
	}
	return ""
}

func fingerprint(labels map[string]string) string {
	sum := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		fmt.Fprintf(sum, "%d:%s=%d:%s;", len(name), name, len(labels[name]), labels[name])
	}
	return hex.EncodeToString(sum.Sum(nil))[:16]
}

// retention is how long a repeat of an alert is recognized. Alertmanager repeats a firing alert every few hours.
const retention = 30 * 24 * time.Hour

const (
	pruneAlerts = `delete from policy_alerts where received_at < now() - $1::interval`

	pruneEvents = `delete from policy_events e using policies p cross join lateral
  (select id from policy_events where policy_id = p.id order by id desc offset $1 limit 1) newest
where e.policy_id = p.id and e.id <= newest.id`

	// Keep the action for an episode that its policy remembers: the episode may continue, or be reported again. Brakes
	// look back less far than $1. Actions on a deleted application go into the archive together with it.
	pruneActions = `delete from policy_actions a where a.acted_at < now() - $1::interval
and not exists (select from policies p, jsonb_path_query(p.state, '$.tracks[*].episodes[*].start') start
  where p.id = a.policy_id and p.deleted_at is null and (start #>> '{}')::timestamptz = a.started_at)
and not exists (select from applications where id::text = a.instance and deleted_at is not null)`
)

// Prune deletes alerts that nobody sends any more, events beyond those that a policy shows, and old actions for
// violations that are over. The metrics still count what is deleted.
func Prune(ctx context.Context, q store.Querier) error {
	var failed []error
	for _, old := range []struct {
		sql  string
		keep any
	}{{pruneAlerts, retention}, {pruneEvents, newestEvents}, {pruneActions, retention}} {
		if _, err := q.Exec(ctx, old.sql, old.keep); err != nil {
			failed = append(failed, fmt.Errorf("prune policies: %w", err))
		}
	}
	return errors.Join(failed...)
}

// Limits of an alert. Prometheus' own default limits on labels are lower.
const (
	maxLabels  = 128
	maxText    = 8 << 10
	maxTexts   = 128 << 10 // of one alert: fits into an event even if JSON needs six bytes per letter
	farAhead   = 24 * time.Hour
	maxMessage = 10_000
)

// Check adds what is wrong with the alert, the i-th of its message. Clocks differ, so a start in the near future is
// allowed; one far ahead would make every later episode look old. The texts of an alert that names no policy of ours
// are not stored and not checked: Alertmanager drops a message that is refused, with all other alerts in it.
func (a *Alert) Check(i int, faults *problem.Faults) {
	at := fmt.Sprintf("alerts[%d]", i)
	if i == maxMessage {
		faults.Add("alerts", 0, "has more than %d entries", maxMessage)
	}
	if a.Status != Firing && a.Status != Resolved {
		faults.Add(at+".status", 0, "must be firing or resolved")
	}
	if a.StartsAt.IsZero() {
		faults.Add(at+".startsAt", 0, "is required")
	}
	if len(a.Fingerprint) > 128 || !clean(a.Fingerprint) {
		faults.Add(at+".fingerprint", 0, "is longer than 128 bytes or no text")
	}
	if _, named := a.policy(); !named {
		return
	}
	if !a.StartsAt.IsZero() && (time.Until(a.StartsAt) > farAhead || a.StartsAt.Year() < 2000) {
		faults.Add(at+".startsAt", 0, "is %s, which no clock shows", a.StartsAt.Format(time.RFC3339))
	}
	sum := 0
	for name, texts := range map[string]map[string]string{"labels": a.Labels, "annotations": a.Annotations} {
		if len(texts) > maxLabels {
			faults.Add(at+"."+name, 0, "has more than %d entries", maxLabels)
		}
		for key, value := range texts {
			sum += len(key) + len(value)
			if len(key)+len(value) > maxText || !clean(key) || !clean(value) {
				faults.Add(at+"."+name, 0, "has an entry that is longer than %d bytes or no text", maxText)
				break
			}
		}
	}
	if sum > maxTexts {
		faults.Add(at, 0, "has more than %d bytes of labels and annotations", maxTexts)
	}
}

// clean reports whether a text can be stored.
func clean(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) }
