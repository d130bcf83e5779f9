package mec_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/mec"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

func at(latitude, longitude float64) (p, q *float64) { return &latitude, &longitude }

// world has two zones with an access point each, ten kilometres apart.
type world struct {
	t   *testing.T
	db  *store.DB
	ctx context.Context
	now time.Time
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t, storetest.New(t), store.WithSource(t.Context(), "/functions/test"), time.Now().UTC().Add(-time.Hour)}
	for i, zone := range []string{"north", "south"} {
		a := mec.AccessPoint{ID: zone + "-1"}
		a.Latitude, a.Longitude = at(47.1-0.1*float64(i), 8)
		all := []mec.AccessPoint{a}
		require.NoError(t, mec.CheckAccessPoints(all))
		w.tx(func(ctx context.Context, tx *store.Tx) error { return mec.SetZone(ctx, tx, zone, all) })
	}
	return w
}

func (w *world) tx(do func(context.Context, *store.Tx) error) {
	w.t.Helper()
	require.NoError(w.t, w.db.Tx(w.ctx, do))
}

// goes says where a user is; each time is later than the one before.
func (w *world) goes(user string, latitude, longitude float64) {
	w.t.Helper()
	w.now = w.now.Add(time.Second)
	p := mec.Position{Address: user, At: w.now}
	p.Latitude, p.Longitude = at(latitude, longitude)
	w.tx(func(ctx context.Context, tx *store.Tx) error { return mec.Ingest(ctx, tx, []mec.Position{p}) })
}

func (w *world) subscribe(kind, body string) *mec.Stored {
	w.t.Helper()
	var s mec.Subscription
	require.NoError(w.t, json.Unmarshal([]byte(strings.Replace(body, "{", `{"callbackReference": "https://example.org/hook", `, 1)), &s))
	var out *mec.Stored
	w.tx(func(ctx context.Context, tx *store.Tx) (err error) {
		out, err = mec.Subscribe(ctx, tx, kind, "me", s)
		return err
	})
	return out
}

// told lists what a subscriber was told, in short.
func (w *world) told(s *mec.Stored) (out []string) {
	w.t.Helper()
	for _, e := range storetest.Published(w.db, events.LocationNoticed) {
		about, err := events.Data[events.Location](e)
		require.NoError(w.t, err)
		if about.Subscription != s.ID {
			continue
		}
		var n struct{ NotificationType, UserLocationEvent, ZoneID, UserNumEvent, DistanceEvent, Result string }
		require.NoError(w.t, json.Unmarshal(about.Notification, &n))
		out = append(out, strings.Join(strings.Fields(strings.Join([]string{
			n.NotificationType, n.UserLocationEvent, n.ZoneID, n.UserNumEvent, n.DistanceEvent, n.Result,
		}, " ")), " "))
	}
	return out
}

func TestSubscribersAreToldWhatHappens(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	user := w.subscribe("users", `{"subscriptionType": "UserLocationEventSubscription", "address": "sip:ann", "requestTestNotification": true}`)
	zone := w.subscribe("zones", `{"subscriptionType": "ZoneLocationEventSubscription", "zoneId": "south", "locationEventCriteria": ["ENTERING_AREA_EVENT"]}`)
	full := w.subscribe("zones", `{"subscriptionType": "ZoneStatusSubscription", "zoneId": "south", "upperNumberOfUsersZoneThreshold": 2}`)
	area := w.subscribe("area", `{"subscriptionType": "UserAreaSubscription", "addressList": ["sip:ann"], "areaDefine": {"shape": 1, "points": [{"latitude": 47.1, "longitude": 8}], "radius": 1000}}`)
	near := w.subscribe("distance", `{"subscriptionType": "UserDistanceSubscription", "monitoredAddress": ["sip:ann"], "referenceAddress": ["sip:bob"], "distance": 500, "criteria": "AllWithinDistance"}`)
	w.goes("sip:ann", 47.1, 8.001)
	w.goes("sip:bob", 47.0, 8)
	w.goes("sip:ann", 47.001, 8)
	w.goes("sip:ann", 47.0011, 8)
	require.Equal(t, []string{
		"TestNotification", "UserLocationEventNotification ENTERING_AREA_EVENT north", "UserLocationEventNotification LEAVING_AREA_EVENT north",
		"UserLocationEventNotification ENTERING_AREA_EVENT south",
	}, w.told(user))
	require.Equal(t, []string{"ZoneLocationEventNotification ENTERING_AREA_EVENT south", "ZoneLocationEventNotification ENTERING_AREA_EVENT south"}, w.told(zone))
	require.Equal(t, []string{"ZoneStatusNotification south OVER_ZONE_UPPER_THD"}, w.told(full))
	require.Equal(t, []string{"UserAreaNotification ENTERING_AREA_EVENT north", "UserAreaNotification LEAVING_AREA_EVENT south"}, w.told(area))
	require.Equal(t, []string{"UserDistanceNotification AllWithinDistance"}, w.told(near))

	before := len(w.told(user))
	w.now = w.now.Add(-time.Hour)
	w.goes("sip:ann", 47.1, 8)
	require.Len(t, w.told(user), before, "what is older than what is known changes nothing")
	list, err := mec.FindUsers(t.Context(), w.db, nil, []string{"south"}, nil)
	require.NoError(t, err)
	require.Len(t, list.User, 2)
	zones, err := mec.FindZones(t.Context(), w.db, nil)
	require.NoError(t, err)
	require.Equal(t, 2, zones[1].Users)
	require.Equal(t, 1, zones[0].Points)
	d, err := mec.FindDistance(t.Context(), w.db, []string{"sip:ann", "sip:bob"}, nil)
	require.NoError(t, err)
	require.InDelta(t, 122, d.Distance, 2)
	_, err = mec.FindDistance(t.Context(), w.db, []string{"sip:eve"}, &mec.Point{})
	require.Equal(t, problem.NotFound, problem.KindOf(err))
}

func TestReportsAndTheEndOfSubscriptions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.goes("sip:ann", 47.1, 8)
	periodic := w.subscribe("users", `{"subscriptionType": "UserLocationPeriodicSubscription", "address": "sip:ann", "periodicEventInfo": {"reportingInterval": 60, "reportingAmount": 2}}`)
	ends := w.subscribe("users", `{"subscriptionType": "UserLocationEventSubscription", "address": "sip:ann", "expiryDeadline": {"seconds": 32503680000, "nanoSeconds": 0}}`)
	pass := func(of *mec.Stored, column string) {
		w.tx(func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Exec(ctx, "update mec_subscriptions set "+column+" = now() - interval '1 second' where id = $1 and "+column+" is not null", of.ID)
			return err
		})
		w.tx(mec.Due)
	}
	w.tx(mec.Due)
	require.Empty(t, w.told(periodic))
	for range 4 {
		pass(periodic, "next_at")
	}
	require.Equal(t, []string{"UserLocationPeriodicNotification north SUCCESS", "UserLocationPeriodicNotification north SUCCESS"}, w.told(periodic), "two, as asked for")
	pass(ends, "expires_at")
	w.tx(mec.Due)
	require.Equal(t, []string{"ExpiryNotification"}, w.told(ends))
	_, err := mec.Get(t.Context(), w.db, "users", ends.ID, "me")
	require.Equal(t, problem.NotFound, problem.KindOf(err))
	url, err := mec.CallbackOf(t.Context(), w.db, ends.ID)
	require.NoError(t, err)
	require.NotEmpty(t, url, "its end is still to be told")
	_, err = mec.Get(t.Context(), w.db, "users", periodic.ID, "somebody else")
	require.Equal(t, problem.NotFound, problem.KindOf(err))
}

// TestASubscriberIsToldNowAndThen: what happens within frequency is told after it, if it is still so.
func TestASubscriberIsToldNowAndThen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	area := w.subscribe("area", `{"subscriptionType": "UserAreaSubscription", "addressList": ["sip:ann", "sip:bob"], "frequency": 600, "areaDefine": {"points": [{"latitude": 47.1, "longitude": 8}], "radius": 1000}}`)
	near := w.subscribe("distance", `{"subscriptionType": "UserDistanceSubscription", "monitoredAddress": ["sip:ann"], "referenceAddress": ["sip:bob"], "distance": 500, "criteria": "AllWithinDistance", "frequency": 600}`)
	pass := func() {
		w.tx(func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Exec(ctx, "update mec_subscriptions set told_at = told_at - interval '11 minutes'")
			return err
		})
	}
	w.goes("sip:bob", 47, 8)
	w.goes("sip:ann", 47.1, 8)
	in := "UserAreaNotification ENTERING_AREA_EVENT north"
	require.Equal(t, []string{in}, w.told(area))
	w.goes("sip:ann", 47, 8)
	w.goes("sip:ann", 47.1, 8)
	w.goes("sip:bob", 47.1, 8)
	w.tx(mec.Due)
	require.Equal(t, []string{in}, w.told(area), "it was told a moment ago")
	require.Equal(t, []string{"UserDistanceNotification AllWithinDistance"}, w.told(near))
	pass()
	w.tx(mec.Due)
	require.Equal(t, []string{in, in}, w.told(area), "sip:bob is there since; sip:ann was away and is back")
	pass()
	w.tx(mec.Due)
	require.Len(t, w.told(area), 2, "nothing has changed")
	w.goes("sip:ann", 47, 8)
	require.Equal(t, "UserAreaNotification LEAVING_AREA_EVENT south", w.told(area)[2])
	w.goes("sip:ann", 47.1, 8)
	require.Len(t, w.told(near), 2, "they were apart, and are together again")
}

// TestOnlyExactPositionsCount: with trackingAccuracy, what is less exact moves nobody.
func TestOnlyExactPositionsCount(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	area := w.subscribe("area", `{"subscriptionType": "UserAreaSubscription", "addressList": ["sip:ann"], "trackingAccuracy": 50, "areaDefine": {"points": [{"latitude": 47.1, "longitude": 8}], "radius": 1000}}`)
	report := w.subscribe("users", `{"subscriptionType": "UserLocationPeriodicSubscription", "address": "sip:ann", "frequency": 60, "trackingAccuracy": 50}`)
	require.Equal(t, &mec.Periodic{Interval: 60}, report.Body.Periodic, "as version 2 says it")
	at := func(latitude, accuracy float64) {
		w.now = w.now.Add(time.Second)
		longitude := 8.0
		w.tx(func(ctx context.Context, tx *store.Tx) error {
			return mec.Ingest(ctx, tx, []mec.Position{{Address: "sip:ann", At: w.now, Latitude: &latitude, Longitude: &longitude, Accuracy: &accuracy}})
		})
	}
	reported := func() string {
		w.tx(func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Exec(ctx, "update mec_subscriptions set next_at = now() where next_at is not null")
			return err
		})
		w.tx(mec.Due)
		all := w.told(report)
		return all[len(all)-1]
	}
	at(47.1, 500)
	require.Empty(t, w.told(area))
	require.Equal(t, "UserLocationPeriodicNotification NOT_AVAILABLE", reported())
	at(47.1, 50)
	require.Len(t, w.told(area), 1)
	require.Equal(t, "UserLocationPeriodicNotification north SUCCESS", reported())
	at(47, 500)
	require.Len(t, w.told(area), 1, "who knows whether it has left")
	at(47, 10)
	require.Equal(t, []string{"UserAreaNotification ENTERING_AREA_EVENT north", "UserAreaNotification LEAVING_AREA_EVENT south"}, w.told(area))
}

func TestPointsAsClientsWriteThem(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"47.99, 55.22", "47.99,55.22", "47.99%2C 55.22"} {
		p, ok := mec.ParsePoint(text)
		require.True(t, ok, text)
		require.Equal(t, mec.Point{Latitude: 47.99, Longitude: 55.22}, p)
	}
	for _, text := range []string{"", "1", "91,0", "a,b", "NaN,0"} {
		_, ok := mec.ParsePoint(text)
		require.False(t, ok, text)
	}
	require.InDelta(t, 878_000, mec.Point{Latitude: 52.52, Longitude: 13.405}.Distance(mec.Point{Latitude: 48.8566, Longitude: 2.3522}), 2000, "Berlin to Paris")
}

func TestSubscriptionsAreChecked(t *testing.T) {
	t.Parallel()
	for body, path := range map[string]string{
		`{"subscriptionType": "UserAreaSubscription", "callbackReference": "https://example.org"}`:                                                            "subscriptionType",
		`{"subscriptionType": "UserLocationEventSubscription", "address": "a"}`:                                                                               "callbackReference",
		`{"subscriptionType": "UserLocationEventSubscription", "address": "a", "callbackReference": "file:///etc/passwd"}`:                                    "callbackReference",
		`{"subscriptionType": "UserLocationEventSubscription", "callbackReference": "https://example.org"}`:                                                   "address",
		`{"subscriptionType": "UserLocationEventSubscription", "address": "a", "callbackReference": "https://example.org", "websockNotifConfig": {}}`:         "websockNotifConfig",
		`{"subscriptionType": "UserLocationEventSubscription", "address": "a", "callbackReference": "https://example.org", "expiryDeadline": {"seconds": 1}}`: "expiryDeadline",
		`{"subscriptionType": "UserLocationEventSubscription", "address": "a", "callbackReference": "https://example.org", "frequency": 5}`:                   "frequency",
		`{"subscriptionType": "UserLocationEventSubscription", "address": "a", "callbackReference": "https://example.org", "trackingAccuracy": 5}`:            "trackingAccuracy",
		`{"subscriptionType": "UserLocationPeriodicSubscription", "address": "a", "callbackReference": "https://example.org", "frequency": -5}`:               "frequency",
	} {
		var s mec.Subscription
		require.NoError(t, json.Unmarshal([]byte(body), &s))
		var refused *problem.Error
		require.ErrorAs(t, s.Check("users", time.Now()), &refused, body)
		require.Equal(t, path, refused.Fields[0].Path, body)
	}
}
