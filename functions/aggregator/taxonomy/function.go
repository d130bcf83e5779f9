// Package taxonomy answers with the clusters, nodes and pods that telemetry reports.
//
// It reads the stored topology, a view of its rows, and makes that new first when it is older than TAXONOMY_AGE; where that
// takes long, as with very many nodes, a caller gets what is stored, if it is recent. A caller sees the picture with its gaps,
// each named in warnings. While the store is away it answers by telemetry alone.
package taxonomy

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/topology"
	"github.com/littoral-project/littoral/shared/topology/collect"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "GET /aggregator/{$}", Role: auth.Viewer, Aliases: []string{"GET /aggregator"}}},
	Emits:  []string{events.TopologyChanged, events.PodsChanged}, // when it had to look
	Class:  function.Series,                                      // it looks as the tick does
	Needs:  []function.Need{function.Telemetry},
}

// Function answers the taxonomy.
type Function struct {
	db         *store.DB
	telemetry  *collect.Collector
	config     config
	refreshing singleflight.Group
}

type config struct {
	Age    time.Duration `envconfig:"TAXONOMY_AGE" default:"5s"`    // from which the stored topology is made new first
	Recent time.Duration `envconfig:"TAXONOMY_RECENT" default:"1m"` // up to which it is answered where that takes long
}

// New makes the function.
func New(env *function.Env) (*Function, error) {
	f := &Function{db: env.DB}
	if err := env.Config(&f.config); err != nil {
		return nil, err
	}
	var err error
	f.telemetry, err = collect.Open(env.Config, env.HTTP)
	return f, err
}

// mostClusters is the longest page.
const mostClusters = 1000

// Handle answers GET /aggregator/: the newest shape, with ?shape=v1 the older one; of all or of ?cluster= and ?node=,
// with all keys of the nodes or ?keys=, in pages of ?limit= clusters. Whoever has the present picture already, by its
// entity tag, gets 304. Who says Cache-Control: max-stale gets the stored picture, however old, without waiting for
// telemetry. Without the telemetry that says what there is the answer is 503, never an empty taxonomy.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	view, shape, err := ask(r)
	if err != nil {
		return err
	}
	at, err := topology.SavedAt(r.Context(), f.db)
	if err != nil && view.Whole() {
		return f.live(w, r, shape) // the store is away, and telemetry alone can tell
	}
	if err != nil || at.IsZero() || time.Since(at) > f.config.Age+maxStale(r) {
		if err := f.renew(r.Context(), at); err != nil {
			return err
		}
	}
	found, err := view.Open(r.Context(), f.db)
	if err != nil {
		return err
	}
	h := w.Header()
	// Weak, since the same picture may be compressed or not.
	tag := `W/"` + strconv.FormatInt(found.At().UnixMicro(), 36) + `"`
	h.Set("ETag", tag)
	h.Set("Vary", "Accept-Encoding")
	h.Set("Age", strconv.FormatInt(int64(max(0, time.Since(found.At()).Seconds())), 10))
	if found.Next != "" {
		next := r.URL.Query()
		next.Set("after", found.Next)
		h.Set("Link", "<"+(&url.URL{Path: "/aggregator/", RawQuery: next.Encode()}).String()+`>; rel="next"`)
	}
	if function.NoneMatch(r, tag) {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	picture := found.Write
	if shape == "v1" {
		picture = found.WriteV1
	}
	h.Set("Content-Type", "application/json")
	if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		return write(r.Context(), picture, w)
	}
	h.Set("Content-Encoding", "gzip")
	z, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err != nil {
		return err
	}
	if err := write(r.Context(), picture, z); err != nil {
		return err
	}
	return z.Close()
}

// live answers with what telemetry says now.
func (f *Function) live(w http.ResponseWriter, r *http.Request, shape string) error {
	picture, err := f.telemetry.Collect(r.Context(), time.Now())
	if err != nil {
		return err
	}
	if shape == "v1" {
		return function.WriteJSON(w, http.StatusOK, picture.Taxonomy.V1())
	}
	return function.WriteJSON(w, http.StatusOK, picture.Taxonomy)
}

// forever is longer than any picture is kept.
const forever = 365 * 24 * time.Hour

// maxStale is how much older than fresh the picture may be for this caller (RFC 9111 §5.2.1.2).
func maxStale(r *http.Request) time.Duration {
	for directive := range strings.SplitSeq(strings.Join(r.Header.Values("Cache-Control"), ","), ",") {
		name, value, given := strings.Cut(strings.TrimSpace(directive), "=")
		if !strings.EqualFold(name, "max-stale") {
			continue
		}
		seconds, err := strconv.ParseUint(strings.Trim(value, `"`), 10, 32)
		switch {
		case !given || errors.Is(err, strconv.ErrRange):
			return forever
		case err == nil:
			return min(time.Duration(seconds)*time.Second, forever)
		}
	}
	return 0
}

func write(ctx context.Context, picture func(context.Context, io.Writer) error, to io.Writer) error {
	out := bufio.NewWriterSize(to, 64<<10)
	if err := picture(ctx, out); err != nil {
		return err
	}
	return out.Flush()
}

func ask(r *http.Request) (view topology.View, shape string, err error) {
	q := function.NewQuery(r, "shape", "cluster", "node", "keys", "after", "limit")
	shape = q.OneOf("shape", "v1")
	view = topology.View{
		Cluster: q.Text("cluster"), Node: q.Text("node"), After: q.Text("after"), Limit: q.Int("limit", 0, 1, mostClusters),
	}
	if keys := q.Text("keys"); keys != "" {
		view.Keys = strings.Split(keys, ",")
		known := topology.NodeKeys()
		for _, key := range view.Keys {
			if !slices.Contains(known, key) {
				q.Fault("keys", "%q is no key of a node", problem.Brief(key, 100))
			}
		}
		if shape == "v1" {
			q.Fault("keys", "is not for the older shape")
		}
	}
	return view, shape, q.Err()
}

// patience is how long a caller who could have a recent picture waits for a newer one.
const patience = 2 * time.Second

// renew refreshes the stored topology, which is as old as it says. Of several callers one refreshes it and the others wait. Whoever
// could have a recent one does not wait long: the refresh goes on, for the next caller.
func (f *Function) renew(ctx context.Context, at time.Time) error {
	refreshed := f.refreshing.DoChan("", func() (any, error) { return nil, f.refresh(context.WithoutCancel(ctx)) })
	var enough <-chan time.Time
	if time.Since(at) <= f.config.Recent {
		enough = time.After(patience)
	}
	select {
	case answer := <-refreshed:
		return answer.Err
	case <-enough:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// refresh makes the stored topology new, unless somebody has done so meanwhile.
func (f *Function) refresh(ctx context.Context) error {
	ctx, stop := context.WithTimeout(ctx, Spec.Limits().Timeout) // of its own, since callers may have left
	defer stop()
	if at, err := topology.SavedAt(ctx, f.db); err != nil || time.Since(at) <= f.config.Age {
		return err
	}
	_, err := f.telemetry.Refresh(ctx, f.db)
	return err
}
