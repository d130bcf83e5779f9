package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// generated makes the instance that a name like ring:40:7 stands for: family, components, seed.
func generated(name string) (*instance, bool, error) {
	parts := strings.Split(name, ":")
	if len(parts) != 3 || !slices.Contains([]string{"ring", "tree", "geometric"}, parts[0]) {
		return nil, false, nil
	}
	n, err := strconv.Atoi(parts[1])
	if err != nil || n < 2 || n > 40 {
		return nil, true, fmt.Errorf("%s: the number of components must be 2 to 40", name)
	}
	seed, err := strconv.ParseUint(parts[2], 10, 64)
	if err != nil {
		return nil, true, fmt.Errorf("%s: the seed: %w", name, err)
	}
	return generate(parts[0], n, seed), true, nil
}

// cable joins two clusters, in both directions.
type cable struct {
	a, b    int
	latency int64
}

// generate makes clusters that a ring, a tree or a random geometric graph of cables joins. Each cable is one medium for both
// directions, and between two clusters there are the fastest way and, where there is one, another over other cables.
func generate(family string, components int, seed uint64) *instance {
	r := rand.New(rand.NewPCG(seed, uint64(len(family))))
	in := &instance{}
	clusters, each := max(3, components/2), 5
	if components < 10 {
		each = 2
	}
	for k := range clusters {
		in.LAN = append(in.LAN, lan{int64(40 + r.IntN(40)), int64(50 + r.IntN(100))})
		for range each {
			in.Nodes = append(in.Nodes, node{k, int64(2+r.IntN(3)) * 1000, int64(4+r.IntN(5)) << 10})
		}
	}
	for range components {
		in.Components = append(in.Components, component{int64(2+r.IntN(8)) * 250, int64(1+r.IntN(6)) * 512})
		row := make([]float64, len(in.Nodes))
		for i := range row {
			row[i] = float64(r.IntN(101))
		}
		in.Score = append(in.Score, row)
	}
	cables := cablesOf(family, clusters, r)
	for range cables {
		in.Media = append(in.Media, medium{int64(60 + r.IntN(100))})
	}
	for a := range clusters {
		for b := range clusters {
			if a == b {
				continue
			}
			first := fastest(cables, clusters, a, b, nil)
			second := fastest(cables, clusters, a, b, first)
			for i, way := range [][]int{first, second} {
				if len(way) == 0 || i == 1 && slices.Equal(first, second) {
					continue
				}
				p := path{From: a, To: b, Media: way}
				for _, c := range way {
					p.Latency += cables[c].latency
				}
				in.Paths = append(in.Paths, p)
			}
		}
	}
	for range components + components/4 {
		from := r.IntN(components)
		to := (from + 1 + r.IntN(components-1)) % components
		in.Channels = append(in.Channels, channel{from, to, int64(1 + r.IntN(8)), int64(400 + r.IntN(4000))})
	}
	return in
}

func cablesOf(family string, clusters int, r *rand.Rand) (out []cable) {
	switch family {
	case "ring":
		for i := range clusters {
			out = append(out, cable{i, (i + 1) % clusters, int64(100 + r.IntN(400))})
		}
	case "tree":
		for i := 1; i < clusters; i++ {
			out = append(out, cable{r.IntN(i), i, int64(100 + r.IntN(400))})
		}
	default:
		at := make([][2]float64, clusters)
		for i := range at {
			at[i] = [2]float64{r.Float64(), r.Float64()}
		}
		far := func(i, k int) float64 { return math.Hypot(at[i][0]-at[k][0], at[i][1]-at[k][1]) }
		for i := 1; i < clusters; i++ {
			near := 0 // so that all are joined
			for k := range i {
				if far(i, k) < far(i, near) {
					near = k
				}
			}
			for k := range i {
				if k == near || far(i, k) < 1.3/math.Sqrt(float64(clusters)) {
					out = append(out, cable{k, i, int64(100 + 1000*far(i, k))})
				}
			}
		}
	}
	return out
}

// fastest is Dijkstra's way over cables; those to be shunned count many times.
func fastest(cables []cable, clusters, from, to int, shun []int) []int {
	far, by := slices.Repeat([]int64{math.MaxInt64}, clusters), make([]int, clusters)
	far[from] = 0
	done := make([]bool, clusters)
	for range clusters {
		here := -1
		for i := range clusters {
			if !done[i] && far[i] < math.MaxInt64 && (here < 0 || far[i] < far[here]) {
				here = i
			}
		}
		if here < 0 {
			break
		}
		done[here] = true
		for i, c := range cables {
			next := c.b
			if c.b == here {
				next = c.a
			} else if c.a != here {
				continue
			}
			length := c.latency
			if slices.Contains(shun, i) {
				length *= 20
			}
			if far[here]+length < far[next] {
				far[next], by[next] = far[here]+length, i
			}
		}
	}
	if far[to] == math.MaxInt64 {
		return nil
	}
	var out []int
	for here := to; here != from; {
		c := cables[by[here]]
		out = append(out, by[here])
		here = c.a + c.b - here
	}
	slices.Reverse(out)
	return out
}
