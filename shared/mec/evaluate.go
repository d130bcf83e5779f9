package mec

import "maps"

// Move is a user who is elsewhere than before.
type Move struct {
	Before *Position // nil: was not known
	After  *Position
}

// scene is what subscriptions are judged by.
type scene struct {
	moves  []Move
	before map[string]*Position // of users that subscriptions name, moved or not
	after  map[string]*Position
	users  map[string]int // in each zone now
	joined map[string]int // how many more than before
}

// notice is what a subscriber is told.
type notice map[string]any

// judge returns what a subscription has to tell of what has changed. It looks at what was before and what is now, so it needs to
// remember nothing.
func (s *Subscription) judge(now scene) []notice {
	switch s.Type {
	case UserEvent:
		return s.userMoved(now)
	case ZoneEvent:
		return s.zoneCrossed(now)
	case ZoneStatus:
		if n := now.users[s.ZoneID]; n >= s.UpperUsers && n-now.joined[s.ZoneID] < s.UpperUsers {
			return []notice{{"notificationType": "ZoneStatusNotification", "zoneId": s.ZoneID, "userNumEvent": "OVER_ZONE_UPPER_THD"}}
		}
	case UserArea:
		return s.areaCrossed(now)
	case UserDistance:
		if was, is := s.near(now.before), s.near(now.after); is && !was {
			return []notice{s.distanceMet(now.after)}
		}
	}
	return nil
}

func (s *Subscription) userMoved(now scene) (out []notice) {
	for _, m := range now.moves {
		if m.After.Address != s.Address {
			continue
		}
		if m.Before != nil && m.Before.ZoneID == m.After.ZoneID && m.Before.AccessPointID == m.After.AccessPointID {
			continue
		}
		if m.Before != nil && s.wants(Leaving) {
			out = append(out, eventOf("UserLocationEventNotification", Leaving, m.Before, m.After))
		}
		if s.wants(Entering) {
			out = append(out, eventOf("UserLocationEventNotification", Entering, m.After, m.After))
		}
	}
	return out
}

func (s *Subscription) zoneCrossed(now scene) (out []notice) {
	for _, m := range now.moves {
		was, is := m.Before != nil && m.Before.ZoneID == s.ZoneID, m.After.ZoneID == s.ZoneID
		if len(s.Addresses) > 0 && !contains(s.Addresses, m.After.Address) {
			continue
		}
		switch {
		case is && !was && s.wants(Entering):
			out = append(out, eventOf("ZoneLocationEventNotification", Entering, m.After, m.After))
		case was && !is && s.wants(Leaving):
			out = append(out, eventOf("ZoneLocationEventNotification", Leaving, m.Before, m.After))
		}
	}
	return out
}

func (s *Subscription) areaCrossed(now scene) (out []notice) {
	inside := func(p *Position) bool {
		at, known := p.Point()
		return known && s.Area.contains(at)
	}
	for _, m := range now.moves {
		if !contains(s.Addresses, m.After.Address) {
			continue
		}
		switch was, is := inside(m.Before), inside(m.After); {
		case is && !was && s.wants(Entering):
			out = append(out, eventOf("UserAreaNotification", Entering, m.After, m.After))
		case was && !is && s.wants(Leaving):
			out = append(out, eventOf("UserAreaNotification", Leaving, m.After, m.After))
		}
	}
	return out
}

// differs returns what has become different since a subscriber was told last, where users are as seen says, and what is seen now. A
// user whose place is not known exactly enough is where it was.
func (s *Subscription) differs(seen map[string]bool, where map[string]*Position) (out []notice, now map[string]bool) {
	where, now = s.exact(where), maps.Clone(seen)
	if now == nil {
		now = map[string]bool{}
	}
	if s.Type == UserDistance {
		if now[met] = s.near(where); now[met] && !seen[met] {
			out = append(out, s.distanceMet(where))
		}
		return out, now
	}
	for _, address := range s.Addresses {
		p := where[address]
		at, known := p.Point()
		if !known {
			continue
		}
		event := Leaving
		if now[address] = s.Area.contains(at); now[address] {
			event = Entering
		}
		if now[address] != seen[address] && s.wants(event) {
			out = append(out, eventOf("UserAreaNotification", event, p, p))
		}
	}
	return out, now
}

// met is what is seen of a distance: whether its criterion holds.
const met = "criteria"

func (s *Subscription) distanceMet(where map[string]*Position) notice {
	return notice{
		"notificationType": "UserDistanceNotification", "distanceEvent": s.DistanceCriteria,
		"monitoredUsers": located(s.Monitored, where), "referenceUsers": located(s.Reference, where),
	}
}

// near reports whether the criterion holds. Users whose place is not known count for nothing.
func (s *Subscription) near(where map[string]*Position) bool {
	within, beyond := 0, 0
	for _, a := range s.Monitored {
		for _, b := range s.Reference {
			p, one := where[a].Point()
			q, other := where[b].Point()
			switch {
			case !one || !other:
			case p.Distance(q) <= s.Metres:
				within++
			default:
				beyond++
			}
		}
	}
	switch s.DistanceCriteria {
	case Within:
		return within > 0
	case AllWithin:
		return within > 0 && beyond == 0
	case Beyond:
		return beyond > 0
	}
	return beyond > 0 && within == 0
}

// eventOf tells that a user entered or left where at says; p has the position.
func eventOf(kind, event string, at, p *Position) notice {
	n := notice{
		"notificationType": kind, "address": p.Address, "zoneId": at.ZoneID, "accessPointId": at.AccessPointID,
		"userLocationEvent": event, "timeStamp": StampOf(p.At),
	}
	if info := infoOf(p.Latitude, p.Longitude, p.Accuracy); info != nil {
		n["locationInfo"] = info
	}
	return n
}

func located(addresses []string, where map[string]*Position) []notice {
	out := []notice{}
	for _, a := range addresses {
		if p := where[a]; p != nil {
			out = append(out, notice{"address": a, "locationInfo": infoOf(p.Latitude, p.Longitude, p.Accuracy)})
		}
	}
	return out
}

func contains(list []string, text string) bool {
	for _, one := range list {
		if one == text {
			return true
		}
	}
	return false
}
