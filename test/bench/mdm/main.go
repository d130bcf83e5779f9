// Command mdm measures the metadata graph: how fast events are taken in, what a path costs among many entities, and what
// the corpus of Cypher queries takes on its own graph and among many entities.
//
//	go run ./test/bench/mdm [-entities 100000] [-events 10000] [-walks 200]
//
// It starts a Postgres that writes through to the disk. Times are of this process and Postgres, without HTTP.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/mdm"
	"github.com/littoral-project/littoral/shared/mdm/cypher"
	"github.com/littoral-project/littoral/shared/mdm/schema"
	"github.com/littoral-project/littoral/shared/migrate"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/localpg"
	"github.com/littoral-project/littoral/test/bench/stats"
)

func main() {
	entities := flag.Int("entities", 100_000, "entities that there are")
	events := flag.Int("events", 10_000, "events that are taken in and measured")
	walks := flag.Int("walks", 200, "paths that are asked for")
	flag.Parse()
	if err := run(context.Background(), *entities, *events, *walks); err != nil {
		fmt.Fprintln(os.Stderr, "mdm:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, entities, events, walks int) error {
	dir, err := os.MkdirTemp("", "littoral-bench-mdm-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	server, err := localpg.Start(ctx, localpg.Options{Dir: filepath.Join(dir, "pg"), Durable: true, Notice: func(string) {}})
	if err != nil {
		return err
	}
	defer func() { _ = server.Stop() }()
	db, err := open(ctx, server, "small")
	if err != nil {
		return err
	}
	defer db.Close()
	if err := corpus(ctx, db, "the corpus, on its own graph"); err != nil {
		return err
	}
	large, err := open(ctx, server, "large")
	if err != nil {
		return err
	}
	defer large.Close()
	all := graph(entities)
	began := time.Now()
	if err := publish(ctx, large, all); err != nil {
		return err
	}
	fmt.Printf("%d entities and %d relations taken in: %.1f s, %.0f events/s\n", entities, len(all)-entities, time.Since(began).Seconds(), float64(len(all))/time.Since(began).Seconds())
	if _, err := large.Exec(ctx, "analyze"); err != nil {
		return err
	}
	for _, kind := range []string{"new entities", "the same again, a second later"} {
		at := 1
		if kind != "new entities" {
			at = 2
		}
		began := time.Now()
		if err := publish(ctx, large, more(events, at)); err != nil {
			return err
		}
		fmt.Printf("%d events, %s: %.2f s\n", events, kind, time.Since(began).Seconds())
	}
	if err := paths(ctx, large, entities, walks); err != nil {
		return err
	}
	return corpus(ctx, large, fmt.Sprintf("the corpus, among %d entities", entities+events))
}

func open(ctx context.Context, server *localpg.Server, name string) (*store.DB, error) {
	if err := server.EnsureDatabase(ctx, name); err != nil {
		return nil, err
	}
	if err := migrate.Up(ctx, server.URL(name)); err != nil {
		return nil, err
	}
	return store.Open(ctx, store.Config{DatabaseURL: server.URL(name), MaxConns: 2}, nil, nil)
}

const envelope = `{"connector_edf_id": "7c9e6679-7425-40de-944b-e07fc1f90ae7", "connector_type": "bench", "event_type": "upsert", "timestamp": %d, "payload": %s}`

func entity(kind, name, attributes string, at int) string {
	return fmt.Sprintf(envelope, at, fmt.Sprintf(`{"json_schema_ref": "urn:x:%s:1", "identifier": %q%s}`, kind, name, attributes))
}

func relation(kind string, from, to uuid.UUID) string {
	return fmt.Sprintf(envelope, 1, fmt.Sprintf(`{"json_schema_ref": "urn:x:%s:1", "from_edf_id": %q, "to_edf_id": %q}`, kind, from, to))
}

func machine(i int) uuid.UUID { return mdm.EntityID("machine", fmt.Sprint("m", i)) }
func service(i int) uuid.UUID { return mdm.EntityID("service", fmt.Sprint("s", i)) }

// graph has a fifth of machines, in a ring with as many chords, and services on them that send to each other.
func graph(entities int) (events []string) {
	r := rand.New(rand.NewPCG(1, 2))
	machines := entities / 5
	services := entities - machines
	for i := range machines {
		events = append(events, entity("machine", fmt.Sprint("m", i), fmt.Sprintf(`, "cores": %d, "rack": "r%d", "arch": "x86_64", "memory": 68719476736`, 1<<r.IntN(6), i/40), 1))
	}
	for i := range services {
		events = append(events, entity("service", fmt.Sprint("s", i), fmt.Sprintf(`, "replicas": %d, "image": "registry.example/s%d:1", "team": "t%d"`, r.IntN(5), i%100, i%50), 1))
	}
	for i := range machines {
		events = append(events, relation("wire", machine(i), machine((i+1)%machines)), relation("wire", machine(i), machine(r.IntN(machines))))
	}
	for i := range services {
		events = append(events, relation("runs", service(i), machine(r.IntN(machines))), relation("sends", service(i), service(r.IntN(services))))
	}
	return events
}

// more are entities beside those of the graph.
func more(events, at int) (list []string) {
	for i := range events {
		list = append(list, entity("sensor", fmt.Sprint("x", i), fmt.Sprintf(`, "value": %d, "unit": "C", "room": "r%d"`, i%40, i%100), at))
	}
	return list
}

// publish does what functions/mdm/publish does with lists of a thousand.
func publish(ctx context.Context, db *store.DB, events []string) error {
	for list := range slices.Chunk(events, mdm.MaxBatch) {
		changes, err := mdm.Parse([]byte("[" + strings.Join(list, ",") + "]"))
		if err != nil {
			return err
		}
		err = db.Tx(ctx, func(ctx context.Context, tx *store.Tx) error {
			schemas, err := mdm.SchemasOf(ctx, tx, changes)
			if err != nil {
				return err
			}
			if err := schema.Validate(changes, schemas); err != nil {
				return err
			}
			_, err = mdm.Publish(ctx, tx, changes)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// paths asks for what is within three hops of entities chosen at random.
func paths(ctx context.Context, db *store.DB, entities, walks int) error {
	r := rand.New(rand.NewPCG(3, 4))
	var took stats.Sample
	nodes, truncated := 0, 0
	for i := range walks + 5 {
		id := service(r.IntN(entities - entities/5))
		if i%2 == 0 {
			id = machine(r.IntN(entities / 5))
		}
		began := time.Now()
		around, err := mdm.Around(ctx, db, id, 3)
		if err != nil {
			return err
		}
		if i < 5 {
			continue // the first ones find nothing in memory
		}
		took.Add(time.Since(began))
		nodes += len(around.Nodes)
		if around.Truncated {
			truncated++
		}
	}
	fmt.Printf("3 hops among %d entities: p50 %.1f ms, p95 %.1f ms; %d entities each on average, %d of %d truncated\n",
		entities, took.P50(), took.P95(), nodes/walks, truncated, walks)
	return nil
}

// folder of the corpus.
const folder = "shared/mdm/cypher/testdata/"

var parameters = map[string]json.RawMessage{
	"cpu": json.RawMessage(`4`), "zone": json.RawMessage(`"a"`), "skip": json.RawMessage(`1`), "limit": json.RawMessage(`5`),
	"names": json.RawMessage(`["c1", "shop", "'"]`), "map": json.RawMessage(`{"key": "value"}`), "nothing": json.RawMessage(`null`),
}

// corpus publishes the graph of the corpus and runs each query once to warm up and three times for its time.
func corpus(ctx context.Context, db *store.DB, title string) error {
	text, err := os.ReadFile(folder + "graph.txt")
	if err != nil {
		return err
	}
	types := map[string]string{"ghost": "compute"}
	var events []string
	for line := range strings.SplitSeq(strings.TrimSpace(string(text)), "\n") {
		w := strings.SplitN(line, " ", 3)
		if strings.HasPrefix(w[2], "{") {
			types[w[1]] = w[0]
			events = append(events, entity(w[0], w[1], ", "+strings.TrimSuffix(w[2][1:], "}"), 1))
			continue
		}
		events = append(events, relation(w[1], mdm.EntityID(types[w[0]], w[0]), mdm.EntityID(types[w[2]], w[2])))
	}
	if err := publish(ctx, db, events); err != nil {
		return err
	}
	if _, err := db.Exec(ctx, "analyze"); err != nil {
		return err
	}
	queries, err := queries()
	if err != nil {
		return err
	}
	var took stats.Sample
	slow := map[string]float64{}
	late := 0
	for _, q := range queries {
		var own stats.Sample
		for i := range 4 {
			began := time.Now()
			_, err := cypher.Run(ctx, db, q, parameters, cypher.Bounds{})
			if err != nil && !strings.Contains(err.Error(), "more than") {
				return fmt.Errorf("%s: %w", q, err)
			}
			if err != nil {
				late++
				own.Add(time.Since(began))
				break
			}
			if i > 0 {
				own.Add(time.Since(began))
			}
		}
		took = append(took, own.Median())
		slow[q] = own.Median()
	}
	fmt.Printf("%s: %d queries, p50 %.1f ms, p95 %.1f ms, slowest %.1f ms; %d ended by their time\n", title, len(queries), took.P50(), took.P95(), took.Quantile(1), late)
	slices.SortFunc(queries, func(a, b string) int { return int(1000 * (slow[b] - slow[a])) })
	for _, q := range queries[:5] {
		fmt.Printf("  %8.1f ms  %s\n", slow[q], strings.ReplaceAll(q, "\n", " "))
	}
	return nil
}

func queries() (list []string, err error) {
	text, err := os.ReadFile(folder + "corpus.txt")
	query := ""
	for line := range strings.SplitSeq(string(text), "\n") {
		switch {
		case strings.HasPrefix(line, "#"), line == "":
		case strings.HasPrefix(line, "=> "):
			list, query = append(list, strings.TrimSuffix(query, "\n")), ""
		default:
			query += line + "\n"
		}
	}
	return list, err
}
