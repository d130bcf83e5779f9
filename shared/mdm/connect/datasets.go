package connect

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/mdm"
	"github.com/littoral-project/littoral/shared/objects"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

// What the connector of data sets publishes.
const (
	DataSet  = "dataset"
	StoredOn = "STORED_ON" // dataset to compute or cluster
)

var dataSets = mdm.EntityID("connector", "littoral/datasets")

const (
	// card is the object of a data set that says what cannot be seen of it.
	card = "dataset.json"

	mostDataSets = 1000
	mostOfCard   = 64 << 10
	mostPlaces   = 100
)

// described is what a card says; what it leaves out is found out.
type described struct {
	Format     string   `json:"format"`
	Compliance string   `json:"compliance"` // High, Medium or Low, or any other tag
	StoredOn   []string `json:"stored_on"`  // nodes as cluster/node, or clusters
}

// dataSet is what a store holds below one name.
type dataSet struct {
	size, files int64
	formats     map[string]int64 // bytes by extension
	newest      time.Time
	card        bool
	cardSize    int64
}

// DataSets publishes the data sets of a folder or bucket: what is below each name at its top is one. Their size, format and age are
// those of the objects; their compliance and places are what their card says.
func DataSets(ctx context.Context, db *store.DB, from objects.Store, now time.Time) error {
	all, err := from.Describe(ctx, "")
	if err != nil {
		return err
	}
	found := gather(all)
	names := slices.Sorted(maps.Keys(found))
	if len(names) > mostDataSets {
		return problem.New(problem.Invalid, "there are %d data sets, at most %d are possible", len(names), mostDataSets)
	}
	b := batch{source: mdm.Source{Connector: dataSets, Type: ours, At: now}}
	present := []uuid.UUID{}
	places := map[[2]uuid.UUID]bool{}
	for _, name := range names {
		set := found[name]
		says, fault := set.read(ctx, from, name)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		id := mdm.EntityID(DataSet, name)
		present = append(present, id)
		b.entity(DataSet, name, set.attributes(name, says, fault, now))
		for _, place := range says.StoredOn {
			kind := Cluster
			if strings.Contains(place, "/") {
				kind = Compute
			}
			at := mdm.EntityID(kind, place)
			places[[2]uuid.UUID{id, at}] = true
			b.relation(StoredOn, id, at)
		}
	}
	type place struct{ Source, Target uuid.UUID }
	known, err := store.Collect(ctx, db, "read former places", pgx.RowToStructByPos[place], selectPlaces, present, StoredOn, dataSets)
	if err != nil {
		return err
	}
	for _, p := range known {
		if !places[[2]uuid.UUID{p.Source, p.Target}] {
			b.add(b.source.Unrelated(StoredOn, p.Source, p.Target))
		}
	}
	if err := b.publishAll(ctx, db, []string{DataSet}, present); err != nil {
		return err
	}
	return mdm.Introduce(ctx, db, mdm.Connector{ID: dataSets, Type: ours, Name: "Data sets of a folder or bucket", Interval: 300}, true)
}

func gather(all []objects.Info) map[string]*dataSet {
	found := map[string]*dataSet{}
	for _, o := range all {
		name, rest, inside := strings.Cut(o.Key, "/")
		set := found[name]
		if set == nil {
			set = &dataSet{formats: map[string]int64{}}
			found[name] = set
		}
		if inside && rest == card {
			set.card, set.cardSize = true, o.Size
			continue
		}
		set.size, set.files = set.size+o.Size, set.files+1
		if format := strings.TrimPrefix(strings.ToLower(path.Ext(o.Key)), "."); format != "" {
			set.formats[format] += o.Size + 1
		}
		if o.ModifiedAt.After(set.newest) {
			set.newest = o.ModifiedAt
		}
	}
	return found
}

// read reads the card; fault is why it cannot be read, which people see in the graph.
func (d *dataSet) read(ctx context.Context, from objects.Store, name string) (says described, fault string) {
	if !d.card {
		return says, ""
	}
	if d.cardSize > mostOfCard {
		return says, fmt.Sprintf("%s has more than %d bytes", card, mostOfCard)
	}
	text, err := from.Get(ctx, name+"/"+card)
	if err == nil {
		err = json.Unmarshal(text, &says)
	}
	if err == nil && len(says.StoredOn) > mostPlaces {
		err = fmt.Errorf("stored_on has more than %d places", mostPlaces)
	}
	if err != nil {
		return described{}, problem.Brief(fmt.Sprintf("%s cannot be read: %v", card, err), 300)
	}
	return says, ""
}

func (d *dataSet) attributes(name string, says described, fault string, now time.Time) map[string]any {
	all := map[string]any{"name": name, "size": d.size, "files": d.files}
	if d.files > 0 {
		all["modified_at"], all["freshness"] = d.newest.UTC().Format(time.RFC3339), age(now.Sub(d.newest))
	}
	format := says.Format
	if format == "" && len(d.formats) > 0 { // what most of it is
		format = slices.MaxFunc(slices.Sorted(maps.Keys(d.formats)), func(a, b string) int { return int(d.formats[a] - d.formats[b]) })
	}
	for attribute, value := range map[string]string{"format": format, "compliance": says.Compliance, "fault": fault} {
		if value != "" {
			all[attribute] = value
		}
	}
	return all
}

// age is that of data in words: it is published anew only when another word is true.
func age(of time.Duration) string {
	switch {
	case of < time.Hour:
		return "Hour"
	case of < 24*time.Hour:
		return "Day"
	case of < 7*24*time.Hour:
		return "Week"
	}
	return "Older"
}
