package mec

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/problem"
)

func TestAreas(t *testing.T) {
	t.Parallel()
	area := func(document string) *AreaInfo {
		var a AreaInfo
		require.NoError(t, json.Unmarshal([]byte(document), &a))
		return &a
	}
	// An L around the corner 47, 8, whose notch is in the north-east; the same moved onto the 180th meridian.
	corners := func(longitude float64) *AreaInfo {
		a := &AreaInfo{Shape: Polygon}
		for _, c := range [][2]float64{{0, 0}, {0, 2}, {1, 2}, {1, 1}, {2, 1}, {2, 0}} {
			a.Points = append(a.Points, struct {
				Latitude  float64 `json:"latitude"`
				Longitude float64 `json:"longitude"`
			}{47 + c[0], math.Remainder(longitude+c[1], 360)})
		}
		return a
	}
	for _, longitude := range []float64{8, 179, -181} {
		a := corners(longitude)
		for place, want := range map[[2]float64]bool{
			{0.5, 0.5}: true, {0.5, 1.5}: true, {1.5, 0.5}: true, {1.5, 1.5}: false, {-0.5, 0.5}: false, {0.5, -0.5}: false,
			{2.5, 0.5}: false, {0.5, 2.5}: false, {1, 0.5}: true,
		} {
			at := Point{47 + place[0], math.Remainder(longitude+place[1], 360)}
			require.Equal(t, want, a.contains(at), "%v from %v", place, longitude)
		}
	}
	for document, want := range map[string]string{
		`{"shape": 1, "points": [{"latitude": 47, "longitude": 8}], "radius": 10}`: "",
		`{"shape": 1, "points": [{"latitude": 47, "longitude": 8}]}`:               "areaDefine.radius",
		`{"points": [], "radius": 10}`:                                             "areaDefine.points",
		`{"shape": 1, "points": [{"latitude": 97, "longitude": 8}], "radius": 10}`: "areaDefine.points[0]",
		`{"shape": 2, "points": [{"latitude": 47, "longitude": 8}]}`:               "areaDefine.points",
		`{"shape": 3, "points": [{"latitude": 47, "longitude": 8}], "radius": 10}`: "areaDefine.shape",
	} {
		var faults problem.Faults
		area(document).check(&faults)
		if want == "" {
			require.NoError(t, faults.Err("x"))
			continue
		}
		var refused *problem.Error
		require.ErrorAs(t, faults.Err("x"), &refused, document)
		require.Equal(t, want, refused.Fields[0].Path, document)
	}
}
