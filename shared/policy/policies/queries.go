package policies

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/paging"
	"github.com/littoral-project/littoral/shared/policy/registry"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

const columns = `id, name, instance, origin, origin_version, definition, rendered, phase, paused, state, rule_wanted,
rule_done, rule_file, rule_url, version, created_at, updated_at, deleted_at`

const (
	selectOne = `select ` + columns + ` from policies where id = $1`

	selectSome = `select ` + columns + ` from policies where id = any($1)`

	selectList = `select ` + columns + ` from policies where deleted_at is null and (created_at, id) > ($1, $2)`

	selectOfInstance = `select ` + columns + ` from policies where instance = $1 order by created_at, id for update`

	// The newest events of each policy are read from the end of its index, however many there are.
	selectEvents = `select p.place - 1, e.type, e.at, e.details from unnest($1::uuid[]) with ordinality as p (id, place)
cross join lateral (select * from policy_events where policy_id = p.id order by id desc limit $2) e order by p.place, e.id`

	upsert = `insert into policies (id, name, instance, origin, origin_version, definition, rendered, phase, paused, state,
rule_wanted, rule_done, rule_file) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
on conflict (id) do update set origin = $4, origin_version = $5, definition = $6, rendered = $7, phase = $8,
  paused = $9, state = $10, rule_wanted = policies.rule_wanted + 1, version = policies.version + 1, created_at = now(),
  updated_at = now(), deleted_at = null where policies.deleted_at is not null
returning rule_wanted, rule_done, rule_file, version, created_at, updated_at`

	update = `update policies set origin = $2, origin_version = $3, definition = $4, rendered = $5, phase = $6,
paused = $7, state = $8, rule_wanted = $9, rule_done = $10, rule_file = $11, deleted_at = $12, version = version + 1,
updated_at = now() where id = $1 returning version, updated_at`

	selectRests = `select exists (select 1 from applications where id = $1 and desired <> 'running')`

	selectBehind = `select exists (select 1 from applications where id = $1 and version > $2)`

	countPhases = `select phase, count(*) from policies where deleted_at is null group by phase`
)

// newestEvents is how many events a policy shows.
const newestEvents = 50

// Get returns the policy with its newest events. The error is NotFound, also for a deleted policy.
func Get(ctx context.Context, q store.Querier, id uuid.UUID) (*Policy, error) {
	p, err := one(ctx, q, selectOne, id)
	if err != nil {
		return nil, err
	}
	if p.DeletedAt != nil {
		return nil, unknown(id.String())
	}
	return p, p.readEvents(ctx, q)
}

// Lock returns the policy without its events and locks it for this transaction. The error is NotFound.
func Lock(ctx context.Context, tx *store.Tx, id uuid.UUID) (*Policy, error) {
	p, err := lockAny(ctx, tx, id)
	if err != nil {
		return nil, err
	}
	if p.DeletedAt != nil {
		return nil, unknown(id.String())
	}
	return p, nil
}

// lockAny is Lock that also finds deleted policies.
func lockAny(ctx context.Context, tx *store.Tx, id uuid.UUID) (*Policy, error) {
	return one(ctx, tx, selectOne+` for update`, id)
}

// LockHeard is Lock for a change by a person. If the application's descriptor has changed and its event is not handled
// yet, the descriptor is followed first: otherwise that event would overwrite the person's change.
func LockHeard(ctx context.Context, tx *store.Tx, id uuid.UUID, render Renderer) (*Policy, error) {
	p, err := one(ctx, tx, selectOne, id)
	if err != nil {
		return nil, err
	}
	behind := false
	if p.Origin == FromDescriptor {
		behind, err = p.holds(ctx, tx, selectBehind, p.OriginVersion)
	}
	if behind {
		err = Follow(ctx, tx, uuid.MustParse(p.Instance), render)
	}
	if err != nil {
		return nil, err
	}
	return Lock(ctx, tx, id)
}

// holds asks a yes-or-no question about the application of the policy; false when that is not ours.
func (p *Policy) holds(ctx context.Context, q store.Querier, sql string, args ...any) (holds bool, err error) {
	app, err := uuid.Parse(p.Instance)
	if err != nil {
		return false, nil // other job managers name instances otherwise
	}
	if err := q.QueryRow(ctx, sql, append([]any{app}, args...)...).Scan(&holds); err != nil {
		return false, fmt.Errorf("look for the application of policy %s: %w", p.ID, err)
	}
	return holds, nil
}

// Filter selects policies; an empty field selects all.
type Filter struct {
	App     string // name or instance, or instances with commas between
	Subject string // type, component or host
	Phase   string
	Name    string
	Search  string // part of a name, in any case
}

// query builds the statement from the filters that are given. One statement for all filters would get a generic plan, which reads
// all policies to find those of one application.
func (f Filter) query(page paging.Page) (sql string, args []any) {
	sql, args = selectList, []any{page.After.At, page.After.ID, page.Limit}
	for _, given := range []struct{ value, condition string }{
		{f.App, `(instance = any(array_append(string_to_array($%[1]d, ','), $%[1]d)) or definition -> 'subject' ->> 'appName' = $%[1]d)`},
		{f.Subject, `(definition -> 'subject' ->> 'type' = $%[1]d or definition -> 'subject' ->> 'appComponent' = $%[1]d
  or definition -> 'subject' ->> 'hostId' = $%[1]d)`},
		{f.Phase, `phase = $%[1]d`},
		{f.Name, `name = $%[1]d`},
		{f.Search, `strpos(lower(name), lower($%[1]d)) > 0`},
	} {
		if given.value != "" {
			args = append(args, given.value)
			sql += " and " + fmt.Sprintf(given.condition, len(args))
		}
	}
	return sql + " order by created_at, id limit $3", args
}

// List returns a page of policies with their newest events, oldest policy first. cut says that the page is shorter than asked
// for, since policies or events are large.
func List(ctx context.Context, q store.Querier, f Filter, page paging.Page) (list []*Policy, cut bool, err error) {
	sql, args := f.query(page)
	list, cut, err = store.Page(ctx, q, "read policies", scan, func(p *Policy) int { return p.size }, sql, args...)
	if err != nil {
		return nil, false, err
	}
	size, end := 0, len(list)
	err = eachEvent(ctx, q, list, func(i int, e registry.Event, bytes int) bool {
		if size += bytes; size > store.PageBytes && i > 0 {
			end = i // this policy begins the next page, with all its events
			return false
		}
		list[i].Status.Events = append(list[i].Status.Events, e)
		return true
	})
	return list[:end], cut || end < len(list), err
}

// lockOfInstance returns the policies about one application, including those deleted by hand, and locks them.
func lockOfInstance(ctx context.Context, tx *store.Tx, instance string) ([]*Policy, error) {
	return many(ctx, tx, selectOfInstance, instance)
}

// OfInstance returns the policies about one application with their events.
func OfInstance(ctx context.Context, q store.Querier, instance string) ([]*Policy, error) {
	list, err := many(ctx, q, `select `+columns+` from policies where instance = $1 and deleted_at is null
order by created_at, id`, instance)
	if err != nil {
		return nil, err
	}
	return list, readEvents(ctx, q, list)
}

// Stats counts policies by phase.
type Stats struct {
	Total    int64 `json:"total"`
	Active   int64 `json:"active"`
	Inactive int64 `json:"inactive"`
	Enforced int64 `json:"enforced"`
	Violated int64 `json:"violated"`
	Unknown  int64 `json:"unknown"`
}

// Count returns the stats.
func Count(ctx context.Context, q store.Querier) (Stats, error) {
	type count struct {
		Phase registry.Phase
		N     int64
	}
	counts, err := store.Collect(ctx, q, "count policies", pgx.RowToStructByPos[count], countPhases)
	var s Stats
	for _, c := range counts {
		s.Total += c.N
		switch c.Phase {
		case registry.Enforced:
			s.Enforced = c.N
		case registry.Violated:
			s.Violated = c.N
		case registry.Inactive:
			s.Inactive = c.N
		case registry.Unknown:
			s.Unknown = c.N
		}
	}
	s.Active = s.Enforced + s.Violated
	return s, err
}

func one(ctx context.Context, q store.Querier, sql string, id uuid.UUID) (*Policy, error) {
	p, err := store.One(ctx, q, "read policy", scan, sql, id)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, unknown(id.String())
	}
	return p, err
}

func many(ctx context.Context, q store.Querier, sql string, args ...any) ([]*Policy, error) {
	return store.Collect(ctx, q, "read policies", scan, sql, args...)
}

func scan(row pgx.CollectableRow) (*Policy, error) {
	var p Policy
	var id uuid.UUID
	var d definition
	var written, rendered []byte
	var phase registry.Phase
	err := row.Scan(&id, &p.Name, &p.Instance, &p.Origin, &p.OriginVersion, &written, &rendered, &phase, &p.Paused, &p.State,
		&p.RuleWanted, &p.RuleDone, &p.RuleFile, &p.RuleURL, &p.Version, &p.CreatedAt, &p.UpdatedAt, &p.DeletedAt)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(written, &d); err != nil {
		return nil, err
	}
	p.ID, p.State.Phase, p.Started = id.String(), phase, p.State.Started
	p.size = len(written) + len(rendered)
	p.Subject, p.Spec, p.Action, p.Variables, p.Properties = d.Subject, d.Spec, d.Action, d.Variables, d.Properties
	p.Defaults()
	p.Status.Phase = phase
	if len(rendered) > 0 {
		p.Status.RenderedSpec = new(registry.Spec)
		if err := json.Unmarshal(rendered, p.Status.RenderedSpec); err != nil {
			return nil, err
		}
	}
	if p.RuleFile != "" {
		p.Status.MeasurementBackends[registry.DefaultBackend] = registry.Backend{
			Service: "prometheus", URL: p.RuleURL, RuleFile: p.RuleFile,
		}
	}
	return &p, nil
}

func (p *Policy) readEvents(ctx context.Context, q store.Querier) error {
	return readEvents(ctx, q, []*Policy{p})
}

func readEvents(ctx context.Context, q store.Querier, list []*Policy) error {
	return eachEvent(ctx, q, list, func(i int, e registry.Event, _ int) bool {
		list[i].Status.Events = append(list[i].Status.Events, e)
		return true
	})
}

// eachEvent calls next with the newest events of the policies, policy by policy, until it has enough. bytes is the
// approximate size of an event in an answer.
func eachEvent(
	ctx context.Context, q store.Querier, list []*Policy, next func(i int, e registry.Event, bytes int) (more bool),
) error {
	const frame = 100 // bytes of an event without its details
	if len(list) == 0 {
		return nil
	}
	ids := make([]uuid.UUID, len(list))
	for i, p := range list {
		ids[i] = p.UUID()
	}
	rows, err := q.Query(ctx, selectEvents, ids, newestEvents)
	if err != nil {
		return fmt.Errorf("read policy events: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var i int
		var e registry.Event
		var details []byte
		if err := rows.Scan(&i, (*string)(&e.Type), &e.Timestamp, &details); err != nil {
			return fmt.Errorf("read policy events: %w", err)
		}
		if err := json.Unmarshal(details, &e.Details); err != nil {
			return fmt.Errorf("read policy events: %w", err)
		}
		if !next(i, e, frame+len(details)) {
			return nil
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("read policy events: %w", err)
	}
	return nil
}

// insert stores a new policy, or restores one that was deleted. fresh is false when it exists already.
func (p *Policy) insert(ctx context.Context, tx *store.Tx) (fresh bool, err error) {
	err = tx.QueryRow(ctx, upsert, p.UUID(), p.Name, p.Instance, p.Origin, p.OriginVersion, defined(&p.Policy),
		p.rendered(), p.State.Phase, p.Paused, p.State, p.RuleWanted, p.RuleDone, p.RuleFile).
		Scan(&p.RuleWanted, &p.RuleDone, &p.RuleFile, &p.Version, &p.CreatedAt, &p.UpdatedAt)
	if errors.Is(err, pgx.ErrNoRows) || store.IsUniqueViolation(err, "policies_name_idx") {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("store policy: %w", err)
	}
	return true, nil
}

func (p *Policy) save(ctx context.Context, tx *store.Tx) error {
	err := tx.QueryRow(ctx, update, p.UUID(), p.Origin, p.OriginVersion, defined(&p.Policy), p.rendered(), p.State.Phase,
		p.Paused, p.State, p.RuleWanted, p.RuleDone, p.RuleFile, p.DeletedAt).Scan(&p.Version, &p.UpdatedAt)
	if err != nil {
		return fmt.Errorf("store policy: %w", err)
	}
	return nil
}

// rendered is the rendered spec as it is stored; null when there is none.
func (p *Policy) rendered() any {
	if p.Status.RenderedSpec == nil {
		return nil
	}
	return p.Status.RenderedSpec
}

// Phases lists the phases by name.
func Phases() []string {
	return []string{
		string(registry.Enforced), string(registry.Violated), string(registry.Inactive), string(registry.Unknown),
	}
}

// now is the present time in the precision of Postgres.
func now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

// brief shortens a text for history.
func brief(text string) string { return problem.Brief(text, 300) }
