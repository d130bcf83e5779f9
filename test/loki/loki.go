// Package loki is a double of Loki: what its HTTP API says of pushing lines and of queries with a stream selector and a line
// filter, in memory. Loki itself is not to be had here.
package loki

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// Server keeps what is pushed. The zero value is empty.
type Server struct {
	mu      sync.Mutex
	streams map[string]*stream // by their labels
}

type stream struct {
	Labels map[string]string `json:"stream"`
	Values [][2]string       `json:"values"`
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.Method + " " + r.URL.Path {
	case "POST /loki/api/v1/push":
		s.push(w, r)
	case "GET /loki/api/v1/query_range":
		s.query(w, r)
	default:
		http.NotFound(w, r)
	}
}

func (s *Server) push(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Streams []stream `json:"streams"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.streams == nil {
		s.streams = map[string]*stream{}
	}
	for _, in := range body.Streams {
		key := labels.FromMap(in.Labels).String()
		at := s.streams[key]
		if at == nil {
			at = &stream{Labels: in.Labels}
			s.streams[key] = at
		}
		for _, v := range in.Values {
			if !slices.Contains(at.Values, v) { // it keeps a line of one stream and instant once
				at.Values = append(at.Values, v)
			}
		}
	}
	w.WriteHeader(http.StatusNoContent)
}

type line struct {
	labels map[string]string
	at     int64
	text   string
}

func (s *Server) query(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	selector, filter, _ := strings.Cut(q.Get("query"), "} |= ")
	if !strings.HasSuffix(selector, "}") {
		selector += "}"
	}
	matchers, err := parser.NewParser(parser.Options{}).ParseMetricSelector(selector)
	text := ""
	if err == nil && filter != "" {
		text, err = strconv.Unquote(filter)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	start, _ := strconv.ParseInt(q.Get("start"), 10, 64)
	end, _ := strconv.ParseInt(q.Get("end"), 10, 64)
	limit, _ := strconv.Atoi(q.Get("limit"))
	found := s.find(matchers, text, start, end)
	slices.SortStableFunc(found, func(a, b line) int {
		if q.Get("direction") == "backward" {
			a, b = b, a
		}
		return int(min(max(a.at-b.at, -1), 1))
	})
	found = found[:min(len(found), limit)]
	result := []stream{}
	for _, l := range found {
		result = append(result, stream{l.labels, [][2]string{{strconv.FormatInt(l.at, 10), l.text}}})
	}
	_ = json.NewEncoder(w).Encode(map[string]any{
		"status": "success", "data": map[string]any{"resultType": "streams", "result": result},
	})
}

// find returns the lines from start to before end.
func (s *Server) find(matchers []*labels.Matcher, text string, start, end int64) []line {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []line
	for _, at := range s.streams {
		if slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(at.Labels[m.Name]) }) {
			continue
		}
		for _, v := range at.Values {
			ns, err := strconv.ParseInt(v[0], 10, 64)
			if err == nil && start <= ns && ns < end && strings.Contains(v[1], text) {
				found = append(found, line{at.Labels, ns, v[1]})
			}
		}
	}
	return found
}
