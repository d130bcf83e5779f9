package mec

import (
	"context"
	"math"
	"net/url"
	"slices"
	"time"

	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

// User is one of a user list.
type User struct {
	Address       string        `json:"address"`
	AccessPointID string        `json:"accessPointId"`
	ZoneID        string        `json:"zoneId"`
	ResourceURL   string        `json:"resourceURL"`
	Timestamp     TimeStamp     `json:"timestamp"`
	LocationInfo  *LocationInfo `json:"locationInfo,omitempty"`
}

// UserList is what is found of users; an unknown one makes it shorter.
type UserList struct {
	User        []User `json:"user"`
	ResourceURL string `json:"resourceURL"`
}

// FindUsers lists users.
func FindUsers(ctx context.Context, q store.Querier, addresses, zones, points []string) (*UserList, error) {
	all, err := UsersAt(ctx, q, addresses, zones, points)
	if err != nil {
		return nil, err
	}
	out := &UserList{User: []User{}, ResourceURL: Root + "/queries/users"}
	for i := range all {
		p := &all[i]
		out.User = append(out.User, User{
			Address: p.Address, AccessPointID: p.AccessPointID, ZoneID: p.ZoneID, Timestamp: StampOf(p.At),
			ResourceURL: out.ResourceURL + "?address=" + url.QueryEscape(p.Address), LocationInfo: infoOf(p.Latitude, p.Longitude, p.Accuracy),
		})
	}
	return out, nil
}

// Zone is one with its numbers.
type Zone struct {
	ZoneID        string `json:"zoneId"`
	Points        int    `json:"numberOfAccessPoints"`
	Unserviceable int    `json:"numberOfUnserviceableAccessPoints"`
	Users         int    `json:"numberOfUsers"`
	ResourceURL   string `json:"resourceURL"`
}

// PointInfo is an access point with its numbers.
type PointInfo struct {
	ID             string        `json:"accessPointId"`
	ConnectionType string        `json:"connectionType"`
	Status         string        `json:"operationStatus"`
	Users          int           `json:"numberOfUsers"`
	ResourceURL    string        `json:"resourceURL"`
	LocationInfo   *LocationInfo `json:"locationInfo,omitempty"`
	Realm          string        `json:"interestRealm,omitempty"`
}

// FindZones lists zones; none named: all.
func FindZones(ctx context.Context, q store.Querier, named []string) ([]Zone, error) {
	points, err := Points(ctx, q, "")
	if err != nil {
		return nil, err
	}
	counts, err := Counts(ctx, q)
	if err != nil {
		return nil, err
	}
	out := []Zone{}
	for _, p := range points { // sorted by zone
		if len(named) > 0 && !slices.Contains(named, p.ZoneID) {
			continue
		}
		if len(out) == 0 || out[len(out)-1].ZoneID != p.ZoneID {
			z := Zone{ZoneID: p.ZoneID, ResourceURL: zoneURL(p.ZoneID)}
			for _, n := range counts[p.ZoneID] {
				z.Users += n
			}
			out = append(out, z)
		}
		z := &out[len(out)-1]
		z.Points++
		if p.Status == "Unserviceable" {
			z.Unserviceable++
		}
	}
	return out, nil
}

func zoneURL(zone string) string { return Root + "/queries/zones/" + url.PathEscape(zone) }

// FindZone returns a zone. The error is NotFound.
func FindZone(ctx context.Context, q store.Querier, zone string) (*Zone, error) {
	all, err := FindZones(ctx, q, []string{zone})
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, problem.New(problem.NotFound, "there is no zone %q", problem.Brief(zone, 60))
	}
	return &all[0], nil
}

// FindPoints lists the access points of a zone, of a realm if one is named. The error is NotFound.
func FindPoints(ctx context.Context, q store.Querier, zone, realm string) ([]PointInfo, error) {
	points, err := Points(ctx, q, zone)
	if err != nil {
		return nil, err
	}
	if len(points) == 0 {
		return nil, problem.New(problem.NotFound, "there is no zone %q", problem.Brief(zone, 60))
	}
	counts, err := Counts(ctx, q)
	if err != nil {
		return nil, err
	}
	out := []PointInfo{}
	for _, p := range points {
		if realm != "" && p.Realm != realm {
			continue
		}
		out = append(out, PointInfo{
			ID: p.ID, ConnectionType: p.ConnectionType, Status: p.Status, Users: counts[zone][p.ID], Realm: p.Realm,
			ResourceURL: zoneURL(zone) + "/accessPoints/" + url.PathEscape(p.ID), LocationInfo: infoOf(p.Latitude, p.Longitude, nil),
		})
	}
	return out, nil
}

// TerminalDistance is how far apart two are.
type TerminalDistance struct {
	Distance  int       `json:"distance"` // m
	Accuracy  int       `json:"accuracy,omitempty"`
	Timestamp TimeStamp `json:"timestamp"`
}

// FindDistance returns the distance between two users, or between one and a point. The error is NotFound for a user whose place
// is not known.
func FindDistance(ctx context.Context, q store.Querier, addresses []string, to *Point) (*TerminalDistance, error) {
	where, err := byAddress(ctx, q, addresses)
	if err != nil {
		return nil, err
	}
	var ends []Point
	out := &TerminalDistance{Timestamp: StampOf(time.Now())}
	for _, a := range addresses {
		at, known := where[a].Point()
		if !known {
			return nil, problem.New(problem.NotFound, "it is not known where %q is", problem.Brief(a, 60))
		}
		ends = append(ends, at)
		if accuracy := where[a].Accuracy; accuracy != nil {
			out.Accuracy += int(math.Ceil(*accuracy))
		}
	}
	if to != nil {
		ends = append(ends, *to)
	}
	out.Distance = int(math.Round(ends[0].Distance(ends[1])))
	return out, nil
}
