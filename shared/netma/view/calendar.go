package view

import (
	"time"

	"github.com/littoral-project/littoral/shared/netma/links"
)

// Calendar is how the network is expected to be, by intervals of one length. What is not foreseen stays as it is.
type Calendar struct {
	Start    time.Time
	Interval time.Duration
	Count    int
	view     *View
	figures  map[string]bool // of which something is foreseen
}

// mostIntervals bounds what is worked out for one request.
const mostIntervals = 48

// Calendar returns what is foreseen from now on; nil when nothing is. Its intervals are those of the coarsest forecast, and as many as
// the longest one needs.
func (v *View) Calendar(now time.Time) *Calendar {
	c := &Calendar{view: v, figures: map[string]bool{}}
	measured := map[[2]string]bool{}
	for i := range v.source.Measured {
		measured[[2]string{v.source.Measured[i].Source, v.source.Measured[i].Target}] = true
	}
	var longest time.Duration
	for i := range v.source.Foreseen {
		f := &v.source.Foreseen[i]
		if !measured[[2]string{f.Source, f.Target}] {
			continue
		}
		length := f.Step * time.Duration(len(f.Values))
		if f.FirstAt.Add(length - f.Step).Before(now) {
			continue // it is over since the view was made
		}
		c.figures[f.Metric] = true
		c.Interval, longest = max(c.Interval, f.Step), max(longest, length)
	}
	if len(c.figures) == 0 {
		return nil
	}
	c.Start = now.UTC().Truncate(c.Interval)
	c.Count = min(int((longest+c.Interval-1)/c.Interval), mostIntervals)
	return c
}

// Has reports whether a cost changes by what is foreseen.
func (c *Calendar) Has(m Metric) bool { return c != nil && c.figures[m.figure] }

// View returns the network as it is expected to be in an interval.
func (c *Calendar) View(interval int) *View {
	at := c.Start.Add(time.Duration(interval)*c.Interval + c.Interval/2)
	s := c.view.source
	s.Measured = links.Expected(s.Measured, s.Foreseen, at)
	v := &View{PIDs: c.view.PIDs, Tag: c.view.Tag, source: s, byName: c.view.byName, byAddr: c.view.byAddr, ranks: map[string][]int32{}}
	v.graph = newGraph(v, s)
	return v
}
