package telemetry

import (
	"encoding/json"
	"math"
)

// Course is a series as answers show it.
type Course struct {
	Labels map[string]string `json:"labels"`
	Points []Moment          `json:"points"`
}

// Moment is a point as a pair of seconds and value, as [1700000000, 0.5]; a value that is no number is null.
type Moment Point

// MarshalJSON writes the pair.
func (m Moment) MarshalJSON() ([]byte, error) {
	var value *float64
	if !math.IsNaN(m.Value) && !math.IsInf(m.Value, 0) {
		value = &m.Value
	}
	return json.Marshal([2]any{float64(m.At.UnixMilli()) / 1000, value})
}

// Courses are the series, no more than a number of them.
func Courses(found []Series, most int) []Course {
	list := []Course{}
	for _, s := range found[:min(len(found), most)] {
		c := Course{Labels: s.Labels, Points: make([]Moment, len(s.Points))}
		for i, p := range s.Points {
			c.Points[i] = Moment(p)
		}
		list = append(list, c)
	}
	return list
}
