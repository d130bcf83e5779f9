// Package mec keeps where users are and tells it to those who subscribed, in the words of ETSI MEC 013 (Location API, v3.1.1;
// latitude and longitude of distance queries as in v2 too). Positions come from whoever knows them: a network, an application,
// a generator.
package mec

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/webhook"
)

// Root is where the API is.
const Root = "/location/v2"

// TimeStamp is a moment as MEC writes it.
type TimeStamp struct {
	Seconds     int64 `json:"seconds"`
	Nanoseconds int64 `json:"nanoSeconds"`
}

// StampOf writes a moment.
func StampOf(t time.Time) TimeStamp { return TimeStamp{t.Unix(), int64(t.Nanosecond())} }

// Time reads a moment.
func (t TimeStamp) Time() time.Time { return time.Unix(t.Seconds, t.Nanoseconds).UTC() }

// Point is a place on earth, in degrees.
type Point struct{ Latitude, Longitude float64 }

const earth = 6_371_000 // m, mean radius

// Distance is the way over the ground in metres, on a sphere (haversine), which is wrong by at most half a percent.
func (p Point) Distance(q Point) float64 {
	rad := func(degrees float64) float64 { return degrees * math.Pi / 180 }
	a := math.Pow(math.Sin(rad(q.Latitude-p.Latitude)/2), 2) +
		math.Cos(rad(p.Latitude))*math.Cos(rad(q.Latitude))*math.Pow(math.Sin(rad(q.Longitude-p.Longitude)/2), 2)
	return 2 * earth * math.Asin(math.Min(1, math.Sqrt(a)))
}

func (p Point) valid() bool { return math.Abs(p.Latitude) <= 90 && math.Abs(p.Longitude) <= 180 }

// ParsePoint reads "47.99, 55.22", also where a client has encoded the comma twice.
func ParsePoint(text string) (Point, bool) {
	latitude, longitude, _ := strings.Cut(strings.ReplaceAll(text, "%2C", ","), ",")
	var p Point
	var wrong [2]error
	p.Latitude, wrong[0] = strconv.ParseFloat(strings.TrimSpace(latitude), 64)
	p.Longitude, wrong[1] = strconv.ParseFloat(strings.TrimSpace(longitude), 64)
	return p, wrong[0] == nil && wrong[1] == nil && p.valid()
}

// LocationInfo is a position. Latitude and longitude are lists even for a single point.
type LocationInfo struct {
	Latitude  []float64  `json:"latitude"`
	Longitude []float64  `json:"longitude"`
	Shape     int        `json:"shape"` // 2: a point; 5: a circle of uncertainty
	Accuracy  *float64   `json:"accuracy,omitempty"`
	Timestamp *TimeStamp `json:"timestamp,omitempty"`
}

func infoOf(latitude, longitude, accuracy *float64) *LocationInfo {
	if latitude == nil || longitude == nil {
		return nil
	}
	return &LocationInfo{Latitude: []float64{*latitude}, Longitude: []float64{*longitude}, Shape: 2, Accuracy: accuracy}
}

// Position is where a user is, as it is handed in. Without an access point it is the nearest one whose place is known.
type Position struct {
	Address       string    `db:"address"         json:"address"`
	ZoneID        string    `db:"zone_id"         json:"zoneId"`
	AccessPointID string    `db:"access_point_id" json:"accessPointId"`
	Latitude      *float64  `db:"latitude"        json:"latitude,omitempty"`
	Longitude     *float64  `db:"longitude"       json:"longitude,omitempty"`
	Accuracy      *float64  `db:"accuracy"        json:"accuracy,omitempty"`
	At            time.Time `db:"at"              json:"timestamp,omitzero"`
}

// Point returns where it is; ok is false where only the access point is known.
func (p *Position) Point() (at Point, ok bool) {
	if p == nil || p.Latitude == nil || p.Longitude == nil {
		return Point{}, false
	}
	return Point{*p.Latitude, *p.Longitude}, true
}

// MaxPositions is the most in one call.
const MaxPositions = 5000

// CheckPositions finds all faults. A user may be in it once.
func CheckPositions(all []Position, now time.Time) error {
	var faults problem.Faults
	if len(all) == 0 || len(all) > MaxPositions {
		faults.Add("users", 0, "are %d; 1 to %d are allowed", len(all), MaxPositions)
		return faults.Err("the positions are invalid")
	}
	seen := map[string]bool{}
	for i := range all {
		p, at := &all[i], fmt.Sprintf("users[%d].", i)
		switch point, known := p.Point(); {
		case (p.Latitude == nil) != (p.Longitude == nil), known && !point.valid():
			faults.Add(at+"latitude", 0, "is to be given with a longitude, both in degrees")
		case !known && p.AccessPointID == "":
			faults.Add(at+"accessPointId", 0, "is missing, and so are latitude and longitude")
		}
		if (p.AccessPointID == "") != (p.ZoneID == "") {
			faults.Add(at+"zoneId", 0, "is to be given with an access point")
		}
		checkName(&faults, at+"address", p.Address)
		if seen[p.Address] {
			faults.Add(at+"address", 0, "is there twice")
		}
		seen[p.Address] = true
		if p.At.IsZero() || p.At.After(now) {
			p.At = now // a clock that is ahead would hide what comes later
		}
	}
	return faults.Err("the positions are invalid")
}

func checkName(faults *problem.Faults, path, name string) {
	if name == "" || len(name) > 253 || strings.ContainsAny(name, "\x00") {
		faults.Add(path, 0, "is to have 1 to 253 characters")
	}
}

// AccessPoint is one of a zone.
type AccessPoint struct {
	ZoneID         string   `db:"zone_id"          json:"-"`
	ID             string   `db:"access_point_id"  json:"accessPointId"`
	ConnectionType string   `db:"connection_type"  json:"connectionType"`
	Status         string   `db:"operation_status" json:"operationStatus"`
	Realm          string   `db:"realm"            json:"interestRealm,omitempty"`
	Latitude       *float64 `db:"latitude"         json:"latitude,omitempty"`
	Longitude      *float64 `db:"longitude"        json:"longitude,omitempty"`
}

var (
	connections = []string{"Femto", "LTE-femto", "Smallcell", "LTE-smallcell", "Wifi", "Pico", "Micro", "Macro", "Wimax", "Unknown"}
	statuses    = []string{"Serviceable", "Unserviceable", "Unknown"}
)

// CheckAccessPoints finds all faults of the access points of a zone.
func CheckAccessPoints(all []AccessPoint) error {
	var faults problem.Faults
	if len(all) > MaxPositions {
		faults.Add("accessPoints", 0, "are %d; %d are allowed", len(all), MaxPositions)
	}
	seen := map[string]bool{}
	for i := range all {
		a, at := &all[i], fmt.Sprintf("accessPoints[%d].", i)
		checkName(&faults, at+"accessPointId", a.ID)
		if seen[a.ID] {
			faults.Add(at+"accessPointId", 0, "is there twice")
		}
		seen[a.ID] = true
		if a.ConnectionType == "" {
			a.ConnectionType = "Unknown"
		}
		if a.Status == "" {
			a.Status = "Serviceable"
		}
		if !slices.Contains(connections, a.ConnectionType) {
			faults.Add(at+"connectionType", 0, "is none of %s", strings.Join(connections, ", "))
		}
		if !slices.Contains(statuses, a.Status) {
			faults.Add(at+"operationStatus", 0, "is none of %s", strings.Join(statuses, ", "))
		}
		if (a.Latitude == nil) != (a.Longitude == nil) || a.Latitude != nil && !(Point{*a.Latitude, *a.Longitude}).valid() {
			faults.Add(at+"latitude", 0, "is to be given with a longitude, both in degrees")
		}
	}
	return faults.Err("the access points are invalid")
}

// Types of subscriptions by the path that they are made at.
const (
	Users    = "users"
	Zones    = "zones"
	Area     = "area"
	Distance = "distance"
)

// Types of subscriptions.
const (
	UserEvent    = "UserLocationEventSubscription"
	UserPeriodic = "UserLocationPeriodicSubscription"
	ZoneEvent    = "ZoneLocationEventSubscription"
	ZoneStatus   = "ZoneStatusSubscription"
	UserArea     = "UserAreaSubscription"
	UserDistance = "UserDistanceSubscription"
)

var types = map[string][]string{
	Users: {UserEvent, UserPeriodic}, Zones: {ZoneEvent, ZoneStatus}, Area: {UserArea}, Distance: {UserDistance},
}

// Subscription is what a subscriber wants to know: the fields of all types.
type Subscription struct {
	Type             string          `json:"subscriptionType"`
	Callback         string          `json:"callbackReference,omitempty"`
	Websocket        json.RawMessage `json:"websockNotifConfig,omitempty"`
	Correlator       string          `json:"clientCorrelator,omitempty"`
	Test             bool            `json:"requestTestNotification,omitempty"`
	Expiry           *TimeStamp      `json:"expiryDeadline,omitempty"`
	Address          string          `json:"address,omitempty"`
	Addresses        []string        `json:"addressList,omitempty"`
	Criteria         []string        `json:"locationEventCriteria,omitempty"`
	Periodic         *Periodic       `json:"periodicEventInfo,omitempty"`
	ZoneID           string          `json:"zoneId,omitempty"`
	UpperUsers       int             `json:"upperNumberOfUsersZoneThreshold,omitempty"`
	Area             *AreaInfo       `json:"areaDefine,omitempty"`
	Monitored        []string        `json:"monitoredAddress,omitempty"`
	Reference        []string        `json:"referenceAddress,omitempty"`
	Metres           float64         `json:"distance,omitempty"`
	DistanceCriteria string          `json:"criteria,omitempty"`
	Frequency        int             `json:"frequency,omitempty"`        // seconds from one notification to the next, at least
	TrackingAccuracy float64         `json:"trackingAccuracy,omitempty"` // metres; less exact positions do not count
}

// Periodic says how often to report.
type Periodic struct {
	Interval int `json:"reportingInterval"`         // seconds
	Amount   int `json:"reportingAmount,omitempty"` // 0: no end
}

// Criteria of events and distances.
const (
	Entering  = "ENTERING_AREA_EVENT"
	Leaving   = "LEAVING_AREA_EVENT"
	Within    = "AnyWithinDistance"
	AllWithin = "AllWithinDistance"
	Beyond    = "AnyBeyondDistance"
	AllBeyond = "AllBeyondDistance"
)

// Check finds all faults of a subscription at the path of a kind.
func (s *Subscription) Check(kind string, now time.Time) error {
	var faults problem.Faults
	need := func(path string, there bool) {
		if !there {
			faults.Add(path, 0, "is missing or not allowed")
		}
	}
	if !slices.Contains(types[kind], s.Type) {
		faults.Add("subscriptionType", 0, "is none of %s", strings.Join(types[kind], ", "))
	}
	if len(s.Websocket) > 0 {
		faults.Add("websockNotifConfig", 0, "is not offered: give a callbackReference")
	}
	if err := webhook.CheckURL(s.Callback); err != nil {
		faults.Add("callbackReference", 0, "%v", err)
	}
	if s.Expiry != nil && !s.Expiry.Time().After(now) {
		faults.Add("expiryDeadline", 0, "has passed")
	}
	for i, c := range s.Criteria {
		if c != Entering && c != Leaving {
			faults.Add(fmt.Sprintf("locationEventCriteria[%d]", i), 0, "is neither %s nor %s", Entering, Leaving)
		}
	}
	if s.Type == UserPeriodic && s.Periodic == nil && s.Frequency > 0 { // as version 2 says it
		s.Periodic = &Periodic{Interval: s.Frequency}
	}
	limits := s.Type == UserArea || s.Type == UserDistance || s.Type == UserPeriodic
	need("frequency", s.Frequency == 0 || s.Frequency > 0 && s.Frequency <= longestGap && limits)
	need("trackingAccuracy", s.TrackingAccuracy == 0 || s.TrackingAccuracy > 0 && limits)
	switch s.Type {
	case UserEvent:
		need("address", s.Address != "")
	case UserPeriodic:
		need("address", s.Address != "")
		need("periodicEventInfo.reportingInterval", s.Periodic != nil && s.Periodic.Interval >= 1 && s.Periodic.Amount >= 0)
	case ZoneEvent, ZoneStatus:
		need("zoneId", s.ZoneID != "")
		need("upperNumberOfUsersZoneThreshold", s.Type == ZoneEvent || s.UpperUsers > 0)
	case UserArea:
		need("addressList", len(s.Addresses) > 0)
		if need("areaDefine", s.Area != nil); s.Area != nil {
			s.Area.check(&faults)
		}
	case UserDistance:
		need("monitoredAddress", len(s.Monitored) > 0)
		need("referenceAddress", len(s.Reference) > 0)
		need("distance", s.Metres > 0)
		need("criteria", slices.Contains([]string{Within, AllWithin, Beyond, AllBeyond}, s.DistanceCriteria))
	}
	if n := len(s.Monitored) + len(s.Reference) + len(s.Addresses); n > 200 {
		faults.Add("addressList", 0, "%d addresses; 200 are allowed", n)
	}
	return faults.Err("the subscription is invalid")
}

// longestGap between notifications, in seconds: a week.
const longestGap = 7 * 24 * 3600

// limited reports whether it is told of what has become different since it was told last, instead of each event: now and then, or
// of exact positions only.
func (s *Subscription) limited() bool {
	return (s.Type == UserArea || s.Type == UserDistance) && (s.Frequency > 0 || s.TrackingAccuracy > 0)
}

// exact returns the positions that are as exact as the subscriber needs them. One that does not say how exact it is counts.
func (s *Subscription) exact(where map[string]*Position) map[string]*Position {
	if s.TrackingAccuracy == 0 {
		return where
	}
	out := make(map[string]*Position, len(where))
	for address, p := range where {
		if p.Accuracy == nil || *p.Accuracy <= s.TrackingAccuracy {
			out[address] = p
		}
	}
	return out
}

// users are those whose positions a subscription is about, where it names them.
func (s *Subscription) users() []string { return slices.Concat(s.Addresses, s.Monitored, s.Reference) }

// wants reports whether an event of that kind is to be told.
func (s *Subscription) wants(criterion string) bool {
	return len(s.Criteria) == 0 || slices.Contains(s.Criteria, criterion)
}

// href is where a subscription is.
func href(kind, id string) string { return Root + "/subscriptions/" + kind + "/" + id }
