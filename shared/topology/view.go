package topology

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/jsoncut"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

const (
	// A cluster or node may be asked for by its key or by the name that targets use.
	selectView = `select c.key, c.body from topology_clusters c
where ($1 = '' or c.key = $1 or exists (select 1 from topology_nodes p where p.cluster_key = c.key and p.cluster = $1))
and ($2 = '' or exists (select 1 from topology_nodes p where p.cluster_key = c.key and $2 in (p.node_key, p.node)))
and c.key > $3 collate "C" order by c.key collate "C" limit nullif($4, 0)`

	selectViewed = `select p.cluster_key, p.node_key, n.last_seen, p.body, ` + selectReadings + `
from topology_nodes p join nodes n on n.cluster = p.cluster and n.node = p.node
where p.cluster_key = any($1) and ($2 = '' or $2 in (p.node_key, p.node))
order by p.cluster_key collate "C", p.node_key collate "C"`

	// In the order in which the keys are given.
	selectViewedV1 = `select p.cluster_key, p.node_key, n.last_seen, p.body, ` + selectReadings + `
from unnest($1::text[]) with ordinality o (key, place) join topology_nodes p on p.cluster_key = o.key
join nodes n on n.cluster = p.cluster and n.node = p.node order by o.place`
)

// View is a part of the taxonomy; the zero View is all of it.
type View struct {
	Cluster, Node string   // keys or names; empty = all
	Keys          []string // of each node, such as staticMetrics or staticMetrics.cpuCores, and its name in any case; nil = all
	After         string   // clusters whose keys come after this one
	Limit         int64    // of clusters; 0 = all
}

// Whole reports whether the view leaves nothing out.
func (v View) Whole() bool { return v.Cluster+v.Node+v.After == "" && v.Keys == nil && v.Limit == 0 }

// NodeKeys are the keys that a node may have, and after a point those of what is in it.
func NodeKeys() []string {
	var keys []string
	for f := range reflect.TypeFor[Node]().Fields() {
		key := keyOf(f)
		keys = append(keys, key)
		if f.Type.Kind() != reflect.Struct {
			continue
		}
		for inner := range f.Type.Fields() {
			if inner.IsExported() { // a measure has nothing that is
				keys = append(keys, key+"."+keyOf(inner))
			}
		}
	}
	return keys
}

func keyOf(f reflect.StructField) string {
	key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return key
}

// SavedAt is the time of the topology saved last; the zero time before the first tick.
func SavedAt(ctx context.Context, q store.Querier) (time.Time, error) {
	h, err := readHead(ctx, q)
	if errors.Is(err, ErrUnknown) {
		return time.Time{}, nil
	}
	return h.at, err
}

// Viewed is a part of the taxonomy that is ready to be written.
type Viewed struct {
	Next string // View.After of the next page; empty if there is none

	view     View
	picked   picked
	head     head
	keys     []string
	clusters [][]byte // their documents, without nodes
	q        store.Querier
}

// Open finds the clusters of the view. The error is Unavailable before the first tick, and NotFound if a cluster or node
// was named that there is not.
func (v View) Open(ctx context.Context, q store.Querier) (*Viewed, error) {
	o := &Viewed{view: v, picked: pick(v.Keys), q: q}
	var err error
	if o.head, err = readHead(ctx, q); err != nil {
		return nil, err
	}
	limit := v.Limit
	if limit > 0 {
		limit++
	}
	rows, err := q.Query(ctx, selectView, v.Cluster, v.Node, v.After, limit)
	if err != nil {
		return nil, fmt.Errorf("read the clusters: %w", err)
	}
	var key string
	var body []byte
	_, err = pgx.ForEachRow(rows, []any{&key, &body}, func() error {
		o.keys, o.clusters = append(o.keys, key), append(o.clusters, bytes.Clone(body))
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the clusters: %w", err)
	}
	if len(o.keys) == 0 && v.Cluster+v.Node != "" && v.After == "" {
		return nil, problem.New(problem.NotFound, "the infrastructure has no such cluster or node")
	}
	if v.Limit > 0 && len(o.keys) > int(v.Limit) {
		o.keys, o.clusters = o.keys[:v.Limit], o.clusters[:v.Limit]
		o.Next = o.keys[v.Limit-1]
	}
	return o, nil
}

// At is the time of the topology.
func (o *Viewed) At() time.Time { return o.head.at }

// Write writes the view in the newest shape, one node after the other, so that memory does not grow with it.
func (o *Viewed) Write(ctx context.Context, w io.Writer) error {
	whole, err := json.Marshal(o.head.taxonomy) // {"timestamp":...,"controller":{},"cluster":null,"warnings":[...]}
	if err != nil {
		return fmt.Errorf("encode the topology: %w", err)
	}
	before, after, _ := bytes.Cut(whole, []byte(`"cluster":null`))
	p := &printer{w: w}
	p.write(before, []byte(`"cluster":{`))
	rows, err := o.q.Query(ctx, selectViewed, o.keys, o.view.Node)
	if err != nil {
		return fmt.Errorf("read the nodes: %w", err)
	}
	defer rows.Close()
	open, first, rest := -1, true, []byte(nil) // the cluster that is being written, and its end
	advance := func(to int) {
		for ; open < to; open++ {
			if open >= 0 {
				p.write([]byte("}"), rest)
			}
			if next := open + 1; next < len(o.keys) {
				p.comma(next == 0)
				p.key(o.keys[next])
				var start []byte
				// Nothing before the nodes can contain this text: quotation marks within texts are escaped.
				start, rest, _ = bytes.Cut(o.clusters[next], []byte(`"node":null`))
				p.write(start, []byte(`"node":{`))
				first = true
			}
		}
	}
	var cluster, node string
	var seen time.Time
	var body []byte
	var now readings
	_, err = pgx.ForEachRow(rows, append([]any{&cluster, &node, &seen, &body}, now.columns()...), func() error {
		i, known := slices.BinarySearch(o.keys, cluster)
		if !known {
			return nil
		}
		advance(i)
		p.comma(first)
		first = false
		p.key(node)
		if err := p.node(now.into(body), seen, o.picked); err != nil {
			return err
		}
		return p.err
	})
	if err != nil {
		return fmt.Errorf("read the nodes: %w", err)
	}
	advance(len(o.keys))
	p.write([]byte("}"), after, []byte("\n"))
	return p.err
}

// printer writes JSON until the first error.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) write(parts ...[]byte) {
	for _, part := range parts {
		if p.err == nil {
			_, p.err = p.w.Write(part)
		}
	}
}

func (p *printer) comma(first bool) {
	if !first {
		p.write([]byte(","))
	}
}

func (p *printer) key(key string) {
	p.value(key)
	p.write([]byte(":"))
}

func (p *printer) value(v any) {
	text, err := json.Marshal(v)
	if err != nil && p.err == nil {
		p.err = err
	}
	p.write(text)
}

// node writes a node's document with the time that it was last seen.
func (p *printer) node(body []byte, seen time.Time, of picked) error {
	at := strconv.AppendFloat(nil, toSeconds(seen), 'f', -1, 64)
	if of == nil {
		p.write([]byte(`{"lastSeen":`), at, []byte(","), body[1:])
		return nil
	}
	p.write([]byte("{"))
	first := true
	if _, wanted := of["lastSeen"]; wanted {
		p.write([]byte(`"lastSeen":`), at)
		first = false
	}
	err := jsoncut.Members(body, func(key, value []byte) error {
		inner, wanted := of[string(key)]
		if !wanted {
			return nil
		}
		p.comma(first)
		first = false
		p.write([]byte(`"`), key, []byte(`":`))
		if inner == nil {
			p.write(value)
			return nil
		}
		p.write([]byte("{"))
		none := true
		err := jsoncut.Members(value, func(key, value []byte) error {
			if inner[string(key)] {
				p.comma(none)
				none = false
				p.write([]byte(`"`), key, []byte(`":`), value)
			}
			return nil
		})
		p.write([]byte("}"))
		return err
	})
	p.write([]byte("}"))
	return err
}

// WriteV1 writes the view in the older shape, one cluster after the other: it has the pods of a cluster beside its nodes.
func (o *Viewed) WriteV1(ctx context.Context, w io.Writer) error {
	stored, err := readClusters(ctx, o.q)
	if err != nil {
		return err
	}
	all := Taxonomy{Cluster: make(map[string]Cluster, len(stored))}
	for key, c := range stored {
		all.Cluster[key] = *c
	}
	called := all.ClusterNames() // which depend on all of them
	keys := slices.DeleteFunc(slices.Clone(o.keys), func(key string) bool { return stored[key] == nil })
	slices.SortFunc(keys, func(a, b string) int { return strings.Compare(called[a], called[b]) })
	whole, err := json.Marshal(o.head.taxonomy.v1Head()) // {"timestamp":...,"controller":{},"cluster":null,"warnings":[...]}
	if err != nil {
		return fmt.Errorf("encode the topology: %w", err)
	}
	before, after, _ := bytes.Cut(whole, []byte(`"cluster":null`))
	p := &printer{w: w}
	p.write(before, []byte(`"cluster":{`))
	place := make(map[string]int, len(keys))
	for i, key := range keys {
		place[key] = i
	}
	open := 0 // the cluster whose nodes are being read
	finish := func(end int) {
		for ; open < end; open++ {
			key := keys[open]
			c := stored[key]
			if len(o.keys) < len(called) {
				c.Name = called[key]
			}
			p.comma(open == 0)
			p.key(called[key])
			p.value(v1Cluster(c, called[key]))
			c.Node = nil
		}
	}
	rows, err := o.q.Query(ctx, selectViewedV1, keys)
	if err != nil {
		return fmt.Errorf("read the nodes: %w", err)
	}
	err = eachNode(rows, func(cluster, node string, n *Node) error {
		finish(place[cluster])
		if o.view.Node != "" && o.view.Node != node && o.view.Node != n.Name {
			return p.err
		}
		c := stored[cluster]
		if c.Node == nil {
			c.Node = map[string]Node{}
		}
		c.Node[node] = *n
		return p.err
	}, func(body []byte, n *Node) error { return json.Unmarshal(body, n) })
	if err != nil {
		return err
	}
	finish(len(keys))
	p.write([]byte("}"), after, []byte("\n"))
	return p.err
}
