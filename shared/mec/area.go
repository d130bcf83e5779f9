package mec

import (
	"fmt"
	"math"

	"github.com/littoral-project/littoral/shared/problem"
)

// Shapes of an area.
const (
	Circle  = 1 // one point, and a radius
	Polygon = 2 // its corners, in order
)

// Corners of a polygon, as GS MEC 013 has them.
const fewestCorners, mostCorners = 3, 15

// AreaInfo is a circle or a polygon.
type AreaInfo struct {
	Points []struct {
		Latitude  float64 `json:"latitude"`
		Longitude float64 `json:"longitude"`
	} `json:"points"`
	Radius float64 `json:"radius"` // m
	Shape  int     `json:"shape"`  // 0 is a circle
}

func (a *AreaInfo) check(faults *problem.Faults) {
	for i := range a.Points {
		if !a.corner(i).valid() {
			faults.Add(fmt.Sprintf("areaDefine.points[%d]", i), 0, "is no place: latitudes reach from -90 to 90, longitudes from -180 to 180")
		}
	}
	switch n := len(a.Points); a.Shape {
	case 0, Circle:
		if n != 1 {
			faults.Add("areaDefine.points", 0, "%d points; a circle has one", n)
		}
		if !(a.Radius > 0) {
			faults.Add("areaDefine.radius", 0, "has to be more than nothing")
		}
	case Polygon:
		if n < fewestCorners || n > mostCorners {
			faults.Add("areaDefine.points", 0, "%d points; a polygon has %d to %d", n, fewestCorners, mostCorners)
		}
	default:
		faults.Add("areaDefine.shape", 0, "is neither %d, a circle, nor %d, a polygon", Circle, Polygon)
	}
}

func (a *AreaInfo) corner(i int) Point { return Point{a.Points[i].Latitude, a.Points[i].Longitude} }

// contains reports whether the place is within the area. Edges of a polygon are straight in degrees, the shorter way round, which is
// what a map shows of areas of some kilometres; one around a pole is not told apart from its outside.
func (a *AreaInfo) contains(p Point) bool {
	if a.Shape != Polygon {
		return p.Distance(a.corner(0)) <= a.Radius
	}
	// Longitudes are taken relative to the place, so that a polygon may lie across the 180th meridian. A line from the place to the
	// east crosses the edges an odd number of times from within.
	east := func(i int) float64 { return math.Remainder(a.Points[i].Longitude-p.Longitude, 360) }
	inside := false
	for i, j := 0, len(a.Points)-1; i < len(a.Points); i, j = i+1, i {
		from, to := a.Points[j], a.Points[i]
		if (from.Latitude > p.Latitude) == (to.Latitude > p.Latitude) {
			continue
		}
		x := east(j)
		if x+math.Remainder(east(i)-x, 360)*(p.Latitude-from.Latitude)/(to.Latitude-from.Latitude) > 0 {
			inside = !inside
		}
	}
	return inside
}
