package mec

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

const (
	selectPoints = `select zone_id, access_point_id, connection_type, operation_status, realm, latitude, longitude
from mec_access_points where ($1 = '' or zone_id = $1) order by zone_id, access_point_id`

	deletePoints = `delete from mec_access_points where zone_id = $1`

	insertPoints = `insert into mec_access_points (zone_id, access_point_id, connection_type, operation_status, realm, latitude, longitude)
select $1, * from unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::float8[], $7::float8[])`

	selectUsers = `select address, zone_id, access_point_id, latitude, longitude, accuracy, at from mec_users
where ($1::text[] is null or address = any($1)) and ($2::text[] is null or zone_id = any($2))
and ($3::text[] is null or access_point_id = any($3)) order by address`

	upsertUsers = `insert into mec_users as u (address, zone_id, access_point_id, latitude, longitude, accuracy, at)
select * from unnest($1::text[], $2::text[], $3::text[], $4::float8[], $5::float8[], $6::float8[], $7::timestamptz[]) order by 1
on conflict (address) do update set zone_id = excluded.zone_id, access_point_id = excluded.access_point_id,
	latitude = excluded.latitude, longitude = excluded.longitude, accuracy = excluded.accuracy, at = excluded.at
where u.at <= excluded.at`

	countUsers = `select zone_id, access_point_id, count(*) from mec_users group by zone_id, access_point_id`

	// A user without a position is where the access point is; an access point without users counts for one, so that a zone in
	// which nobody is at night keeps its place.
	selectCrowds = `with at as (
	select p.zone_id, coalesce(u.latitude, p.latitude) as latitude, coalesce(u.longitude, p.longitude) as longitude, u.address is not null as real
	from mec_access_points p left join mec_users u using (zone_id, access_point_id) where p.zone_id = any($1)
)
select zone_id, round(latitude::numeric, 2)::float8, round(longitude::numeric, 2)::float8, count(*)::float8 from at
where latitude is not null and longitude is not null and (real or not exists (select from at o where o.zone_id = at.zone_id and o.real))
group by 1, 2, 3 order by 1, 2, 3`

	selectSubscriptions = `select id, kind, owner, body from mec_subscriptions
where not expired and (expires_at is null or expires_at > now()) and ($1 = '' or kind = $1) and ($2::uuid is null or id = $2)
and ($3 = '' or owner = $3) order by created_at, id`

	insertSubscription = `insert into mec_subscriptions (id, kind, owner, body, expires_at, next_at, left_over) values ($1, $2, $3, $4, $5, $6, $7)
on conflict (id) do update set body = excluded.body, expires_at = excluded.expires_at, next_at = excluded.next_at, left_over = excluded.left_over`

	deleteSubscription = `delete from mec_subscriptions where id = $1 and kind = $2 and ($3 = '' or owner = $3)`

	selectExpired = `update mec_subscriptions set expired = true where not expired and expires_at <= now() returning id, kind, owner, body`

	deleteExpired = `delete from mec_subscriptions where expires_at < now() - interval '1 day'`

	selectPeriodic = `update mec_subscriptions set
	next_at = case when left_over = 1 then null
		else greatest(now(), next_at) + make_interval(secs => (body -> 'periodicEventInfo' ->> 'reportingInterval')::int) end,
	left_over = left_over - 1
where not expired and next_at <= now() returning id, kind, owner, body`

	selectSeen = `select seen from mec_subscriptions
where id = $1 and not expired and (told_at is null or told_at <= now() - make_interval(secs => $2)) for update`

	saveSeen = `update mec_subscriptions set seen = $2, told_at = case when $3 then now() else told_at end where id = $1`

	selectCallback = `select body ->> 'callbackReference' from mec_subscriptions where id = $1`
)

// SetZone replaces the access points of a zone; without any the zone is gone.
func SetZone(ctx context.Context, tx *store.Tx, zone string, all []AccessPoint) error {
	if _, err := tx.Exec(ctx, deletePoints, zone); err != nil {
		return fmt.Errorf("replace access points: %w", err)
	}
	n := len(all)
	var texts [4][]string
	latitude, longitude := make([]*float64, n), make([]*float64, n)
	for i, a := range all {
		for k, v := range []string{a.ID, a.ConnectionType, a.Status, a.Realm} {
			texts[k] = append(texts[k], v)
		}
		latitude[i], longitude[i] = a.Latitude, a.Longitude
	}
	if _, err := tx.Exec(ctx, insertPoints, zone, texts[0], texts[1], texts[2], texts[3], latitude, longitude); err != nil {
		return fmt.Errorf("store access points: %w", err)
	}
	return nil
}

// Points lists the access points of a zone, or of all with "".
func Points(ctx context.Context, q store.Querier, zone string) ([]AccessPoint, error) {
	return store.Collect(ctx, q, "read access points", pgx.RowToStructByName[AccessPoint], selectPoints, zone)
}

// UsersAt lists users by address, zone and access point; nil lists do not select.
func UsersAt(ctx context.Context, q store.Querier, addresses, zones, points []string) ([]Position, error) {
	return store.Collect(ctx, q, "read users", pgx.RowToStructByName[Position], selectUsers, addresses, zones, points)
}

// Counts returns how many users are at each access point, by zone.
func Counts(ctx context.Context, q store.Querier) (map[string]map[string]int, error) {
	rows, err := q.Query(ctx, countUsers)
	if err != nil {
		return nil, fmt.Errorf("count users: %w", err)
	}
	out := map[string]map[string]int{}
	var zone, point string
	var n int
	_, err = pgx.ForEachRow(rows, []any{&zone, &point, &n}, func() error {
		if out[zone] == nil {
			out[zone] = map[string]int{}
		}
		out[zone][point] = n
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("count users: %w", err)
	}
	return out, nil
}

// Crowd is how many users of a zone are about at a place, to a kilometre.
type Crowd struct {
	Zone  string
	Point Point
	Users float64
}

// Crowds returns where the users of zones are. A zone in which nobody is has its access points instead, each as one user.
func Crowds(ctx context.Context, q store.Querier, zones []string) ([]Crowd, error) {
	return store.Collect(ctx, q, "read where users are", func(row pgx.CollectableRow) (c Crowd, err error) {
		err = row.Scan(&c.Zone, &c.Point.Latitude, &c.Point.Longitude, &c.Users)
		return c, err
	}, selectCrowds, zones)
}

// Ingest stores positions and tells subscribers. One that is older than what is known changes nothing.
func Ingest(ctx context.Context, tx *store.Tx, all []Position) error {
	if err := locate(ctx, tx, all); err != nil {
		return err
	}
	subscriptions, err := listed(ctx, tx, "", nil, "")
	if err != nil {
		return err
	}
	names := map[string]bool{}
	for _, p := range all {
		names[p.Address] = true
	}
	for _, s := range subscriptions {
		for _, a := range s.Body.users() {
			names[a] = true
		}
	}
	involved := slices.Sorted(maps.Keys(names))
	before, err := byAddress(ctx, tx, involved)
	if err != nil {
		return err
	}
	if err := upsert(ctx, tx, all); err != nil {
		return err
	}
	after, err := byAddress(ctx, tx, involved)
	if err != nil {
		return err
	}
	now := scene{before: before, after: after, users: map[string]int{}, joined: map[string]int{}}
	for _, p := range all {
		was, is := before[p.Address], after[p.Address]
		if was != nil && was.At.Equal(is.At) {
			continue // it was older than what is known, or is known
		}
		now.moves = append(now.moves, Move{was, is})
		now.joined[is.ZoneID]++
		if was != nil {
			now.joined[was.ZoneID]--
		}
	}
	counts, err := Counts(ctx, tx)
	if err != nil {
		return err
	}
	for zone, points := range counts {
		for _, n := range points {
			now.users[zone] += n
		}
	}
	for _, s := range subscriptions {
		if s.Body.limited() {
			if err := s.look(ctx, tx, after); err != nil {
				return err
			}
			continue
		}
		for _, n := range s.Body.judge(now) {
			if err := s.tell(ctx, tx, n); err != nil {
				return err
			}
		}
	}
	return nil
}

// locate finds the nearest access point of those who do not say theirs.
func locate(ctx context.Context, tx *store.Tx, all []Position) error {
	if !slices.ContainsFunc(all, func(p Position) bool { return p.AccessPointID == "" }) {
		return nil
	}
	points, err := Points(ctx, tx, "")
	if err != nil {
		return err
	}
	for i := range all {
		p := &all[i]
		at, known := p.Point()
		if p.AccessPointID != "" || !known {
			continue
		}
		nearest := -1.0
		for _, a := range points {
			if a.Latitude == nil || a.Longitude == nil {
				continue
			}
			if d := at.Distance(Point{*a.Latitude, *a.Longitude}); nearest < 0 || d < nearest {
				nearest, p.ZoneID, p.AccessPointID = d, a.ZoneID, a.ID
			}
		}
	}
	return nil
}

func byAddress(ctx context.Context, q store.Querier, addresses []string) (map[string]*Position, error) {
	list, err := UsersAt(ctx, q, addresses, nil, nil)
	if err != nil {
		return nil, err
	}
	out := make(map[string]*Position, len(list))
	for i := range list {
		out[list[i].Address] = &list[i]
	}
	return out, nil
}

func upsert(ctx context.Context, tx *store.Tx, all []Position) error {
	n := len(all)
	address, zone, point, at := make([]string, n), make([]string, n), make([]string, n), make([]time.Time, n)
	latitude, longitude, accuracy := make([]*float64, n), make([]*float64, n), make([]*float64, n)
	for i, p := range all {
		address[i], zone[i], point[i], at[i] = p.Address, p.ZoneID, p.AccessPointID, p.At
		latitude[i], longitude[i], accuracy[i] = p.Latitude, p.Longitude, p.Accuracy
	}
	if _, err := tx.Exec(ctx, upsertUsers, address, zone, point, latitude, longitude, accuracy, at); err != nil {
		return fmt.Errorf("store positions: %w", err)
	}
	return nil
}

// Stored is a subscription as it is kept.
type Stored struct {
	ID    uuid.UUID    `db:"id"`
	Kind  string       `db:"kind"`
	Owner string       `db:"owner"`
	Body  Subscription `db:"body"`
}

// Href is where it is.
func (s *Stored) Href() string { return href(s.Kind, s.ID.String()) }

// MarshalJSON writes it with its link, as MEC has it.
func (s Stored) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Links links `json:"_links"`
		Subscription
	}{links{Self: &link{s.Href()}}, s.Body})
}

type links struct {
	Self         *link `json:"self,omitempty"`
	Subscription *link `json:"subscription,omitempty"`
}

type link struct {
	Href string `json:"href"`
}

// tell asks for a notification. It is delivered by a function of its own, which tries again if the subscriber is away.
func (s *Stored) tell(ctx context.Context, tx *store.Tx, n notice) error {
	n["_links"] = links{Subscription: &link{s.Href()}}
	if s.Body.Correlator != "" {
		n["clientCorrelator"] = s.Body.Correlator
	}
	text, err := json.Marshal(n)
	if err != nil {
		return fmt.Errorf("encode a notification: %w", err)
	}
	return tx.Emit(ctx, events.LocationNoticed, s.ID.String(), events.Location{Subscription: s.ID, Notification: text})
}

// look tells what has become different since the subscriber was told last. If that is too short a while ago, Due looks again.
func (s *Stored) look(ctx context.Context, tx *store.Tx, where map[string]*Position) error {
	seen, err := store.One(ctx, tx, "read what a subscriber was told", pgx.RowTo[map[string]bool], selectSeen, s.ID, s.Body.Frequency)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	notices, now := s.Body.differs(seen, where)
	for _, n := range notices {
		if err := s.tell(ctx, tx, n); err != nil {
			return err
		}
	}
	if maps.Equal(seen, now) {
		return nil
	}
	if _, err := tx.Exec(ctx, saveSeen, s.ID, now, len(notices) > 0); err != nil {
		return fmt.Errorf("store what a subscriber was told: %w", err)
	}
	return nil
}

// lookAgain looks for what was not told because a subscriber had been told something too short a while before.
func lookAgain(ctx context.Context, tx *store.Tx) error {
	all, err := listed(ctx, tx, "", nil, "")
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(s Stored) bool { return !s.Body.limited() || s.Body.Frequency == 0 })
	if len(all) == 0 {
		return nil
	}
	var users []string
	for _, s := range all {
		users = append(users, s.Body.users()...)
	}
	where, err := byAddress(ctx, tx, users)
	if err != nil {
		return err
	}
	for _, s := range all {
		if err := s.look(ctx, tx, where); err != nil {
			return err
		}
	}
	return nil
}

func listed(ctx context.Context, q store.Querier, kind string, id *uuid.UUID, owner string) ([]Stored, error) {
	return store.Collect(ctx, q, "read subscriptions", pgx.RowToStructByName[Stored], selectSubscriptions, kind, id, owner)
}

// Subscriptions lists those of a kind. With an owner, only theirs.
func Subscriptions(ctx context.Context, q store.Querier, kind, owner string) ([]Stored, error) {
	if err := known(kind); err != nil {
		return nil, err
	}
	return listed(ctx, q, kind, nil, owner)
}

func known(kind string) error {
	if types[kind] == nil {
		return problem.New(problem.NotFound, "there are no subscriptions of the kind %q", problem.Brief(kind, 60))
	}
	return nil
}

// Get returns a subscription. The error is NotFound, also for one of somebody else.
func Get(ctx context.Context, q store.Querier, kind string, id uuid.UUID, owner string) (*Stored, error) {
	if err := known(kind); err != nil {
		return nil, err
	}
	all, err := listed(ctx, q, kind, &id, owner)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, problem.New(problem.NotFound, "there is no subscription %s", id)
	}
	return &all[0], nil
}

// Subscribe stores a subscription, and sends the test notification if one is asked for.
func Subscribe(ctx context.Context, tx *store.Tx, kind, owner string, s Subscription) (*Stored, error) {
	if err := known(kind); err != nil {
		return nil, err
	}
	if err := s.Check(kind, time.Now()); err != nil {
		return nil, err
	}
	id, err := uuid.NewV7()
	if err != nil {
		return nil, err
	}
	out := &Stored{ID: id, Kind: kind, Owner: owner, Body: s}
	if err := out.save(ctx, tx); err != nil {
		return out, err
	}
	if err := tx.Emit(ctx, events.ClockWanted, events.Clocks, events.Clock{Need: "location-subscriptions"}); err != nil || !s.Test {
		return out, err
	}
	return out, out.tell(ctx, tx, notice{"notificationType": "TestNotification"})
}

// Change replaces a subscription. Its type stays.
func Change(ctx context.Context, tx *store.Tx, kind string, id uuid.UUID, owner string, s Subscription) (*Stored, error) {
	out, err := Get(ctx, tx, kind, id, owner)
	if err != nil {
		return nil, err
	}
	if err := s.Check(kind, time.Now()); err != nil {
		return nil, err
	}
	if s.Type != out.Body.Type {
		return nil, problem.New(problem.Malformed, "the type of a subscription stays: it is a %s", out.Body.Type)
	}
	out.Body = s
	return out, out.save(ctx, tx)
}

func (s *Stored) save(ctx context.Context, tx *store.Tx) error {
	var expires, next *time.Time
	var left *int
	if s.Body.Expiry != nil {
		at := s.Body.Expiry.Time()
		expires = &at
	}
	if p := s.Body.Periodic; p != nil && s.Body.Type == UserPeriodic {
		at := time.Now().Add(time.Duration(p.Interval) * time.Second)
		next = &at
		if p.Amount > 0 {
			left = &p.Amount
		}
	}
	body, err := json.Marshal(s.Body)
	if err != nil {
		return fmt.Errorf("encode a subscription: %w", err)
	}
	if _, err := tx.Exec(ctx, insertSubscription, s.ID, s.Kind, s.Owner, body, expires, next, left); err != nil {
		return fmt.Errorf("store a subscription: %w", err)
	}
	return nil
}

// Unsubscribe ends a subscription. The error is NotFound.
func Unsubscribe(ctx context.Context, tx *store.Tx, kind string, id uuid.UUID, owner string) error {
	gone, err := tx.Exec(ctx, deleteSubscription, id, kind, owner)
	if err != nil {
		return fmt.Errorf("delete a subscription: %w", err)
	}
	if gone.RowsAffected() == 0 {
		return problem.New(problem.NotFound, "there is no subscription %s", id)
	}
	return nil
}

// Due sends the reports of periodic subscriptions whose time has come, tells what others were not to be told earlier, and tells the
// subscribers of those that have expired.
func Due(ctx context.Context, tx *store.Tx) error {
	expired, err := store.Collect(ctx, tx, "expire subscriptions", pgx.RowToStructByName[Stored], selectExpired)
	if err != nil {
		return err
	}
	for _, s := range expired {
		n := notice{"notificationType": "ExpiryNotification", "expiryDeadline": s.Body.Expiry}
		if err := s.tell(ctx, tx, n); err != nil {
			return err
		}
	}
	periodic, err := store.Collect(ctx, tx, "read periodic subscriptions", pgx.RowToStructByName[Stored], selectPeriodic)
	if err != nil {
		return err
	}
	for _, s := range periodic {
		n := notice{"notificationType": "UserLocationPeriodicNotification", "address": s.Body.Address, "result": "NOT_AVAILABLE"}
		where, err := byAddress(ctx, tx, []string{s.Body.Address})
		if err != nil {
			return err
		}
		if p := s.Body.exact(where)[s.Body.Address]; p != nil {
			n = eventOf("UserLocationPeriodicNotification", "", p, p)
			delete(n, "userLocationEvent")
			n["result"] = "SUCCESS"
		}
		if err := s.tell(ctx, tx, n); err != nil {
			return err
		}
	}
	if err := lookAgain(ctx, tx); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, deleteExpired); err != nil {
		return fmt.Errorf("forget expired subscriptions: %w", err)
	}
	return nil
}

// CallbackOf returns whom to tell; "" if the subscription has ended.
func CallbackOf(ctx context.Context, q store.Querier, id uuid.UUID) (string, error) {
	var url string
	err := q.QueryRow(ctx, selectCallback, id).Scan(&url)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read a subscription: %w", err)
	}
	return url, nil
}

// OwnerOf is whose subscriptions the caller sees: its own, an administrator those of all.
func OwnerOf(ctx context.Context) string {
	p := auth.From(ctx)
	if p.Can(auth.Admin) {
		return ""
	}
	return p.Subject
}
