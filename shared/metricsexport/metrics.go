package metricsexport

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

// Metric is a metric that is exported.
type Metric struct {
	Name      string    `json:"metric_name"`
	Type      Type      `json:"type"`
	Help      string    `json:"metric_info,omitempty"`
	Labels    []string  `json:"labels"`
	States    []string  `json:"states,omitempty"`
	CreatedBy string    `json:"created_by"`
	CreatedAt time.Time `json:"created_at"`
	Forecast  *Forecast `json:"forecast,omitempty"`
	Series    []Value   `json:"series,omitempty"` // only of one metric, not in lists
}

// Value is the present value of one series.
type Value struct {
	Labels map[string]string `json:"labels"`
	Value  *float64          `json:"value,omitempty"` // none of an enum or info
	State  string            `json:"state,omitempty"`
	Info   map[string]string `json:"info,omitempty"`

	// Of a forecast only.
	Lower      *float64   `json:"lower,omitempty"`
	Upper      *float64   `json:"upper,omitempty"`
	Source     string     `json:"source,omitempty"`      // the kind of model that the value comes from
	Error      *float64   `json:"error,omitempty"`       // mean absolute, of the model on the last day
	NaiveError *float64   `json:"naive_error,omitempty"` // the same of the better naive kind
	JudgedAt   *time.Time `json:"judged_at,omitempty"`
	Steps      []float64  `json:"steps,omitempty"`    // all that are foreseen, of which value is the last
	FirstAt    *time.Time `json:"first_at,omitempty"` // of the first of them
	At         time.Time  `json:"at"`
}

// Creation is the body of create_metric.
type Creation struct {
	Type   Type              `json:"type"`
	Name   string            `json:"metric_name"`
	Help   string            `json:"metric_info"`
	Value  json.RawMessage   `json:"value"`
	Labels map[string]string `json:"labels"`
	States []string          `json:"states"`
}

// given is a value in the form of its table.
type given struct {
	number float64
	text   string
	body   map[string]string
}

// Create adds the metric, or gives it another value. The error is Invalid, or Conflict when there is a metric of that name
// and another type.
func Create(ctx context.Context, tx *store.Tx, c Creation, by string) error {
	c.Name = strings.TrimSuffix(c.Name, suffixes[c.Type])
	var faults problem.Faults
	c.check(&faults)
	v := c.value(&faults)
	if err := faults.Err("the metric is not understood"); err != nil {
		return err
	}
	m, err := c.define(ctx, tx, by)
	if err != nil {
		return err
	}
	if m.Forecast != nil {
		return problem.New(problem.Conflict, "%s has the values that a model foresees", c.Name)
	}
	if c.Type == Enum && !slices.Contains(m.States, v.text) {
		return &problem.Error{Kind: problem.Invalid, Detail: "the metric is not understood", Fields: []problem.Field{{
			Path: "value", Detail: "is none of the states " + problem.Brief(strings.Join(m.States, ", "), 200),
		}}}
	}
	labels, err := m.complete(c.Labels)
	if err != nil {
		return err
	}
	tag, err := tx.Exec(ctx, upsertValue, c.Name, labels, v.number, v.text, v.body, c.Type == Counter, MaxSeries)
	if err == nil && tag.RowsAffected() == 0 {
		return problem.New(problem.Conflict, "%s has %d series, and cannot have more", c.Name, MaxSeries)
	}
	return store.Classify(err)
}

func (c Creation) check(faults *problem.Faults) {
	if c.Type == "" {
		faults.Add("type", 0, "is missing")
	}
	checkName("metric_name", c.Name, faults)
	if len(c.Help) > maxText {
		faults.Add("metric_info", 0, "has more than %d bytes", maxText)
	}
	checkLabels("labels", c.Labels, faults)
	if len(c.States) > maxStates || slices.ContainsFunc(c.States, func(s string) bool { return s == "" || len(s) > maxText }) {
		faults.Add("states", 0, "are more than %d, or one is empty or has more than %d bytes", maxStates, maxText)
	}
}

// value reads the value as its type wants it.
func (c Creation) value(faults *problem.Faults) (v given) {
	v.body = map[string]string{}
	switch c.Type {
	case Counter, Gauge:
		n, err := number(c.Value)
		switch {
		case err != nil:
			faults.Add("value", 0, "is no number")
		case c.Type == Counter && !(n >= 0):
			faults.Add("value", 0, "is added to a counter, which never falls: it must not be negative")
		}
		v.number = n
	case Info:
		if json.Unmarshal(c.Value, &v.body) != nil || v.body == nil {
			faults.Add("value", 0, "is no object of texts")
			return v
		}
		checkLabels("value", v.body, faults)
		for name := range v.body {
			if _, twice := c.Labels[name]; twice {
				faults.Add("value."+name, 0, "is a label as well")
			}
		}
	case Enum:
		if json.Unmarshal(c.Value, &v.text) != nil {
			faults.Add("value", 0, "is no state")
		}
	}
	return v
}

// number reads a finite number, or a text that is one.
func number(raw json.RawMessage) (float64, error) {
	var n float64
	if err := json.Unmarshal(raw, &n); err == nil && string(raw) != "null" {
		return n, nil
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return 0, err
	}
	n, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err == nil && (math.IsNaN(n) || math.IsInf(n, 0)) {
		err = errors.New("it is not finite")
	}
	return n, err
}

const (
	insertMetric = `insert into metrics (name, type, help, labels, states, created_by) select $1, $2, $3, $4, $5, $6
where (select count(*) from metrics) < $7 on conflict (name) do nothing`

	selectMetrics = `select m.name, m.type, m.help, m.labels, m.states, m.created_by, m.created_at,
f.query, f.model, f.model_type, f.step_seconds, f.sequence, f.ahead, f.labels, f.due_at, f.told_at, f.failures, f.why
from metrics m left join metric_forecasts f on f.metric = m.name`

	upsertValue = `insert into metric_series (metric, labels, value, text, body) select $1, $2, $3, $4, $5
where exists (select from metric_series where metric = $1 and labels = $2)
or (select count(*) from metric_series where metric = $1) < $7
on conflict (metric, labels) do update set text = excluded.text, body = excluded.body, at = now(),
value = case when $6 then metric_series.value + excluded.value else excluded.value end`

	selectValues = `select metric, labels, value, text, body, lower, upper, source, error, naive_error, judged_at, steps, first_at, at
from metric_series where $1 = '' or metric = $1 order by metric, labels`

	deleteMetrics = `delete from metrics where name = any ($1) returning name`

	deleteForecasts = `delete from metrics where name = any ($1)
and exists (select from metric_forecasts where metric = metrics.name) returning name`
)

// define returns the metric of that name, which it makes if there is none. It is locked.
func (c Creation) define(ctx context.Context, tx *store.Tx, by string) (*Metric, error) {
	names := slices.Sorted(maps.Keys(c.Labels))
	tag, err := tx.Exec(ctx, insertMetric, c.Name, c.Type, c.Help, orEmpty(names), orEmpty(c.States), by, MaxMetrics)
	if err != nil {
		return nil, store.Classify(err)
	}
	m, err := store.One(ctx, tx, "read the metric", scanMetric, selectMetrics+" where m.name = $1 for update of m", c.Name)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, problem.New(problem.Conflict, "there are %d metrics, and no more are possible", MaxMetrics)
	case err != nil:
		return nil, err
	case m.Type != c.Type:
		return nil, problem.New(problem.Conflict, "%s is a %s already", c.Name, m.Type)
	case c.Type == Enum && len(m.States) == 0 && tag.RowsAffected() == 1:
		return nil, &problem.Error{Kind: problem.Invalid, Detail: "the metric is not understood", Fields: []problem.Field{{
			Path: "states", Detail: "are needed when an enum is made",
		}}}
	}
	return m, nil
}

// complete returns the labels with those that are missing, as "". Others than the metric has are Invalid.
func (m *Metric) complete(labels map[string]string) (map[string]string, error) {
	all := make(map[string]string, len(m.Labels))
	for _, name := range m.Labels {
		all[name] = labels[name]
	}
	var faults problem.Faults
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		if !slices.Contains(m.Labels, name) {
			faults.Add("labels."+name, 0, "is not among those that %s was made with: %s", m.Name, strings.Join(m.Labels, ", "))
		}
	}
	return all, faults.Err("the metric is not understood")
}

func scanMetric(row pgx.CollectableRow) (*Metric, error) {
	m := &Metric{}
	var query, model, modelType, why *string
	var step, sequence, ahead, failures *int
	var labels map[string]string
	var due, told *time.Time
	err := row.Scan(&m.Name, &m.Type, &m.Help, &m.Labels, &m.States, &m.CreatedBy, &m.CreatedAt,
		&query, &model, &modelType, &step, &sequence, &ahead, &labels, &due, &told, &failures, &why)
	if err == nil && query != nil {
		m.Forecast = &Forecast{
			Metric: m.Name, Query: *query, Model: *model, ModelType: *modelType, Step: *step, Sequence: *sequence, Ahead: *ahead,
			Labels: labels, DueAt: *due, ToldAt: told, Failures: *failures, Why: *why,
		}
	}
	return m, err
}

func scanValue(row pgx.CollectableRow) (named, error) {
	var n named
	var number float64
	v := &n.Value
	err := row.Scan(&n.metric, &v.Labels, &number, &v.State, &v.Info, &v.Lower, &v.Upper, &v.Source, &v.Error, &v.NaiveError,
		&v.JudgedAt, &v.Steps, &v.FirstAt, &v.At)
	v.Value = &number
	return n, err
}

// named is a value and the name of its metric.
type named struct {
	metric string
	Value
}

// List returns all metrics without their values, by name.
func List(ctx context.Context, q store.Querier) ([]*Metric, error) {
	return store.Collect(ctx, q, "read metrics", scanMetric, selectMetrics+" order by m.name")
}

// Get returns a metric with its values. The error is NotFound.
func Get(ctx context.Context, q store.Querier, name string) (*Metric, error) {
	m, err := store.One(ctx, q, "read the metric", scanMetric, selectMetrics+" where m.name = $1", name)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, unknown(name)
	}
	if err != nil {
		return nil, err
	}
	values, err := store.Collect(ctx, q, "read values", scanValue, selectValues, name)
	for _, v := range values {
		v.shape(m.Type)
		m.Series = append(m.Series, v.Value)
	}
	return m, err
}

// shape leaves out what the type does not have.
func (v *Value) shape(t Type) {
	if t == Enum || t == Info {
		v.Value = nil
	}
	if t != Info {
		v.Info = nil
	}
}

func unknown(name string) error {
	return problem.New(problem.NotFound, "there is no metric %s", problem.Brief(name, 100))
}

// Delete ends a metric of any type. The error is NotFound.
func Delete(ctx context.Context, tx *store.Tx, name string) error {
	gone, err := store.Collect(ctx, tx, "delete the metric", pgx.RowTo[string], deleteMetrics, []string{name})
	if err == nil && len(gone) == 0 {
		return unknown(name)
	}
	return err
}

// Stop ends metrics that models foresee: all of them, or none when one is unknown or is another metric (NotFound).
func Stop(ctx context.Context, tx *store.Tx, names []string) error {
	if len(names) == 0 || len(names) > maxAtOnce {
		return &problem.Error{Kind: problem.Invalid, Detail: "no metrics are named", Fields: []problem.Field{{
			Path: "metric_names", Detail: "must be 1 to " + strconv.Itoa(maxAtOnce) + " names",
		}}}
	}
	gone, err := store.Collect(ctx, tx, "delete metrics", pgx.RowTo[string], deleteForecasts, names)
	if err != nil {
		return err
	}
	for _, name := range names {
		if !slices.Contains(gone, name) {
			return problem.New(problem.NotFound, "there is no metric %s that a model foresees", problem.Brief(name, 100))
		}
	}
	return nil
}

// orEmpty makes an empty array of a nil slice, which would be null.
func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}
