package cypher_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/mdm"
	"github.com/littoral-project/littoral/shared/mdm/cypher"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

const envelope = `{"connector_edf_id": "7c9e6679-7425-40de-944b-e07fc1f90ae7", "connector_type": "test", "event_type": "upsert", "timestamp": 100, "payload": `

func fill(t testing.TB, db *store.DB) {
	t.Helper()
	// The graph that the corpus is about: entities as "type name {attributes}", relations as "name TYPE name".
	graph, err := os.ReadFile("testdata/graph.txt")
	require.NoError(t, err)
	types := map[string]string{"ghost": "compute"}
	var events []string
	for line := range strings.SplitSeq(strings.TrimSpace(string(graph)), "\n") {
		words := strings.SplitN(line, " ", 3)
		if strings.HasPrefix(words[2], "{") {
			types[words[1]] = words[0]
			events = append(events, fmt.Sprintf(`%s {"json_schema_ref": "urn:x:%s:1", "identifier": %q, %s}`, envelope, words[0], words[1], words[2][1:]))
			continue
		}
		events = append(events, fmt.Sprintf(`%s {"json_schema_ref": "urn:x:%s:1", "from_edf_id": %q, "to_edf_id": %q}}`, envelope, words[1],
			mdm.EntityID(types[words[0]], words[0]), mdm.EntityID(types[words[2]], words[2])))
	}
	changes, err := mdm.Parse([]byte("[" + strings.Join(events, ",") + "]"))
	require.NoError(t, err)
	require.NoError(t, db.Tx(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		_, err := mdm.Publish(ctx, tx, changes)
		return err
	}))
}

var parameters = map[string]json.RawMessage{
	"cpu": json.RawMessage(`4`), "zone": json.RawMessage(`"a"`), "skip": json.RawMessage(`1`), "limit": json.RawMessage(`5`),
	"names": json.RawMessage(`["c1", "shop", "'"]`), "map": json.RawMessage(`{"key": "value"}`), "nothing": json.RawMessage(`null`),
}

// corpus reads the queries and their rows.
func corpus(t testing.TB) (queries []string, rows [][]any) {
	t.Helper()
	text, err := os.ReadFile("testdata/corpus.txt")
	require.NoError(t, err)
	query := ""
	for line := range strings.SplitSeq(string(text), "\n") {
		switch {
		case strings.HasPrefix(line, "#"), line == "":
		case strings.HasPrefix(line, "=> "):
			var expected []any
			require.NoError(t, json.Unmarshal([]byte(line[3:]), &expected), query)
			queries, rows, query = append(queries, strings.TrimSuffix(query, "\n")), append(rows, expected), ""
		default:
			query += line + "\n"
		}
	}
	require.Empty(t, query)
	return queries, rows
}

// ask runs a query and returns its rows as lists.
func ask(t testing.TB, db *store.DB, query string) []any {
	t.Helper()
	statement, err := cypher.Compile(query, parameters)
	require.NoError(t, err, query)
	answer, err := cypher.Run(t.Context(), db, query, parameters, cypher.Bounds{})
	require.NoError(t, err, "%s\n%s", query, statement.SQL)
	rows := []any{}
	for _, r := range answer.Rows {
		var object map[string]any
		require.NoError(t, json.Unmarshal(r, &object), "%s", r)
		row := []any{}
		for _, name := range statement.Columns {
			row = append(row, object[name])
		}
		rows = append(rows, row)
	}
	return rows
}

func TestCorpus(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	fill(t, db)
	queries, rows := corpus(t)
	require.GreaterOrEqual(t, len(queries), 200)
	for i, query := range queries {
		t.Run(query, func(t *testing.T) {
			got, want := ask(t, db, query), rows[i]
			if !strings.Contains(query, "ORDER BY") {
				sorted(got)
				sorted(want)
			}
			require.Equal(t, want, got)
		})
	}
}

func sorted(rows []any) {
	slices.SortFunc(rows, func(a, b any) int {
		l, _ := json.Marshal(a)
		r, _ := json.Marshal(b)
		return strings.Compare(string(l), string(r))
	})
}

func TestAnEntityHasTheFormOfNeo4j(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	fill(t, db)
	answer, err := cypher.Run(t.Context(), db, `MATCH (n {identifier: 'cam'})<-[r]-(p) RETURN n, r`, nil, cypher.Bounds{})
	require.NoError(t, err)
	require.Len(t, answer.Rows, 1)
	var row struct {
		N struct {
			Identity   int64
			Labels     []string
			Properties map[string]any
			ElementID  string
		}
		R struct {
			Identity, Start, End int64
			Type                 string
			Properties           map[string]any
		}
	}
	require.NoError(t, json.Unmarshal(answer.Rows[0], &row))
	require.Equal(t, []string{"app"}, row.N.Labels)
	require.Equal(t, mdm.EntityID("app", "cam").String(), row.N.ElementID)
	require.Equal(t, "x", row.N.Properties["_domain"])
	require.InDelta(t, 2, row.N.Properties["prio"], 0)
	require.Equal(t, row.N.Identity, row.R.End)
	require.Equal(t, "PART_OF", row.R.Type)
}

// refusals are queries that are not served, with what the answer names and where.
func TestWhatIsNotServedIsRefusedByItsNameAndPlace(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]string{
		"CREATE (n) RETURN n":                                   "1:1 CREATE is not served",
		"MATCH (n) SET n.x = 1":                                 "1:11 SET is not served",
		"MATCH (n) DELETE n":                                    "1:11 DELETE is not served",
		"MATCH (n) DETACH DELETE n":                             "1:11 DETACH is not served",
		"MATCH (n)\n  REMOVE n.x RETURN n":                      "2:3 REMOVE is not served",
		"MERGE (n:x)":                                           "1:1 MERGE is not served",
		"OPTIONAL MATCH (n) RETURN n":                           "1:1 OPTIONAL is not served",
		"MATCH (n) WITH n RETURN n":                             "1:11 WITH is not served",
		"MATCH (n) RETURN n UNION MATCH (n) RETURN n":           "1:20 UNION is not served",
		"CALL db.labels()":                                      "1:1 CALL is not served",
		"LOAD CSV FROM 'file:///etc/passwd' AS x RETURN x":      "1:1 LOAD is not served",
		"UNWIND [1] AS x RETURN x":                              "1:1 UNWIND is not served",
		"FOREACH (x IN [1] | CREATE (n))":                       "1:1 FOREACH is not served",
		"EXPLAIN MATCH (n) RETURN n":                            "1:1 EXPLAIN is not served",
		"MATCH (n) RETURN CASE WHEN true THEN 1 END":            "1:18 CASE is not served",
		"MATCH (n) RETURN n; MATCH (n) RETURN n":                "1:21 the end is expected, not MATCH",
		"MATCH (n)":                                             "1:10 RETURN, MATCH or WHERE is expected, not the end",
		"SELECT 1":                                              "1:1 MATCH is expected at the beginning, not SELECT",
		"":                                                      "1:1 MATCH is expected at the beginning, not the end",
		"MATCH (a)-[*]->(b) RETURN b":                           "1:13 a path needs an upper bound",
		"MATCH (a)-[*2..]->(b) RETURN b":                        "1:13 a path needs an upper bound",
		"MATCH (a)-[*1..9]->(b) RETURN b":                       "1:13 a path has a length of at most 8",
		"MATCH (a)-[*3..2]->(b) RETURN b":                       "1:13 a path from 3 to 2",
		"MATCH p = shortestPath((a)-[*1..3]-(b)) RETURN p":      "1:11 shortestPath is not served",
		"MATCH (n) RETURN reduce(x = 0, y IN [1] | x)":          "1:18 there is no function reduce",
		"MATCH (n) RETURN apoc.text.join(['a'], 'b')":           "1:28 there is no function that ends in .join",
		"MATCH (n) WHERE EXISTS { (n)--() } RETURN n":           "1:17 EXISTS { } is not served",
		"MATCH (n) RETURN [x IN [1] | x]":                       "1:28 a list that is made of another one",
		"MATCH (n) RETURN m":                                    "1:18 m stands for nothing",
		"MATCH (n) RETURN n.x, m.x":                             "1:23 m stands for nothing",
		"MATCH (n) WHERE (n)-->(m) RETURN n":                    "1:23 m is not known here",
		"MATCH (n)-[n]->(m) RETURN n":                           "1:10 n stands for something already",
		"MATCH (n)-[r]->(r) RETURN n":                           "1:10 r stands for something already",
		"MATCH (n) RETURN n.x AS a, n.y AS a":                   "1:28 two columns are called a",
		"MATCH (n) RETURN count(count(n))":                      "1:24 count stands within another aggregate",
		"MATCH (n) WHERE count(n) > 1 RETURN n":                 "1:17 count is an aggregate",
		"MATCH (n) RETURN n.x + count(n)":                       "1:18 n stands beside an aggregate",
		"MATCH (n) RETURN DISTINCT n.x ORDER BY n.y":            "1:40 after DISTINCT or an aggregate",
		"MATCH (n) RETURN n.x ORDER BY count(n)":                "1:31 an aggregate in ORDER BY",
		"MATCH (n) RETURN n LIMIT -1":                           "1:26 LIMIT is followed by",
		"MATCH (n) RETURN n LIMIT n.x":                          "1:27 LIMIT is followed by",
		"MATCH (n) RETURN n SKIP 'a'":                           "1:25 SKIP is followed by",
		"MATCH (n) WHERE n.x = $absent RETURN n":                "1:23 the parameter $absent is not given",
		"MATCH (n) WHERE 1 < n.x < 3 RETURN n":                  "1:25 comparisons in a row",
		"MATCH (n) RETURN n.x ^ 2":                              "1:22 ^ is not served",
		"MATCH (n) RETURN n.x[1..2]":                            "1:23 a part of a list",
		"MATCH (n $props) RETURN n":                             "1:10 a parameter as the properties",
		"MATCH (n WHERE n.x = 1) RETURN n":                      "1:10 WHERE within a node",
		"MATCH (n:a&b) RETURN n":                                "1:11 & is not served among types",
		"MATCH (n:a) RETURN 'x":                                 "1:20 a text does not end",
		`MATCH (n) RETURN '\q'`:                                 `1:19 a backslash is followed by`,
		"MATCH (n) /* RETURN n":                                 "1:11 a comment does not end",
		"MATCH (n) RETURN 1.x":                                  "1:18 a number does not end in a point",
		"MATCH (n) RETURN 1x":                                   "1:18 a number ends in a letter",
		"MATCH (n) RETURN 1e9999":                               "1:18 the exponent of a number",
		"MATCH (n) RETURN n # x":                                `1:20 '#' stands for nothing here`,
		"MATCH (n) RETURN size(1, 2)":                           "1:18 size has 2 arguments",
		"MATCH (n) RETURN size(DISTINCT n.x)":                   "1:18 DISTINCT stands in aggregates only",
		"MATCH (n) RETURN *, n.x":                               "1:19 nothing stands beside *",
		"MATCH () RETURN *":                                     "1:17 no pattern names anything",
		"MATCH p = (a)--(b), p = (c)--(d) RETURN p":             "1:25 p stands for something else already",
		"MATCH p = (a)-[*1..2]-(b) RETURN p.x":                  "1:34 p is a path",
		"MATCH (n) RETURN " + strings.Repeat("(", 100) + "1":    "1:78 too much stands within each other",
		"MATCH " + strings.Repeat("(a)--", 30) + "(a) RETURN 1": "1:67 a query has more than 24 nodes and relations",
	} {
		_, err := cypher.Compile(query, nil)
		var e *problem.Error
		require.ErrorAs(t, err, &e, query)
		require.Equal(t, problem.Invalid, e.Kind)
		require.Len(t, e.Fields, 1)
		f := e.Fields[0]
		assert.True(t, strings.HasPrefix(fmt.Sprintf("%d:%d %s", f.Line, f.Column, f.Detail), want), "%s\n%d:%d %s", query, f.Line, f.Column, f.Detail)
	}
}

// hostile are texts that would be something else in SQL.
var hostile = []string{
	`'; drop table mdm_entities; --`, `'); delete from mdm_relations; --`, `" or 1=1`, `\'; select pg_sleep(60); --`, `$1`, `$$; drop table mdm_entities; $$`,
	`*/ drop table mdm_entities /*`, `e.edf_id`, `n1.id`, `%1$s`, `%!s(MISSING)`, `') or ('1'='1`, `1; update mdm_entities set type='x'`,
	`';copy mdm_entities to program 'touch /tmp/x';--`, `a' || (select current_user) || '`, `\u0027; drop table mdm_entities`, "\n; drop table mdm_entities",
	`ʼ; drop table mdm_entities`, `‘; drop table mdm_entities`, `{"$gt": ""}`, `}) DETACH DELETE n //`, "` ) DELETE n //", `"}}`, `null`, `::text`,
	`jsonb_build_object('a', 1)`, `(select set_config('transaction_read_only', 'off', true))`, `set role postgres`, `lo_import('/etc/passwd')`,
	`pg_read_file('/etc/passwd')`, `dblink('host=x', 'select 1')`,
}

// TestNothingIsWrittenByAnyQuery: hostile texts in every place of a query, and queries that are SQL.
func TestNothingIsWrittenByAnyQuery(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	fill(t, db)
	before := fingerprint(t, db)
	encode := func(s string) string {
		quoted, err := json.Marshal(s)
		require.NoError(t, err)
		return string(quoted)
	}
	ran := 0
	for _, text := range hostile {
		single := "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(text) + "'"
		name := "`" + strings.ReplaceAll(text, "`", "") + "`"
		for _, query := range []string{
			text, "MATCH (n) WHERE n.x = " + text + " RETURN n", "MATCH (n) RETURN n " + text, "MATCH (n {" + text + ": 1}) RETURN n",
			"MATCH (n) WHERE n.identifier = " + single + " RETURN n", "MATCH (n {note: " + single + "}) RETURN n.note",
			"MATCH (n) WHERE n.note CONTAINS " + single + " RETURN n", "MATCH (n) WHERE n.note =~ " + single + " RETURN n",
			"MATCH (n:" + name + ") RETURN n", "MATCH (n)-[r:" + name + "]->(m) RETURN n", "MATCH (" + name + ") RETURN " + name + " LIMIT 1",
			"MATCH (n) RETURN n." + name + " AS " + name + " LIMIT 1", "MATCH (n {" + name + ": " + single + "}) RETURN n", "RETURN {" + name + ": " + single + "} AS x",
			"MATCH (n) WHERE n.edf_id = " + single + " OR n[" + single + "] = 1 RETURN n", "MATCH (n) WHERE n.x = $p OR n.identifier IN [$p, " + single + "] RETURN n",
			"MATCH (n) RETURN n ORDER BY n." + name + " LIMIT 1",
		} {
			_, err := cypher.Run(t.Context(), db, query, map[string]json.RawMessage{"p": json.RawMessage(encode(text))}, cypher.Bounds{})
			if err == nil {
				ran++
				continue
			}
			require.Contains(t, []problem.Kind{problem.Invalid, problem.Malformed}, problem.KindOf(err), "%s: %v", query, err)
		}
	}
	require.Greater(t, ran, 300, "most of the texts are harmless where they stand")
	require.Equal(t, before, fingerprint(t, db))
}

// fingerprint changes with any row of the graph, any table and any role.
func fingerprint(t *testing.T, db *store.DB) string {
	t.Helper()
	var sum string
	require.NoError(t, db.QueryRow(t.Context(), `select (select md5(string_agg(e::text || e.xmin || e.xmax, ',' order by id)) from mdm_entities e)
		|| (select md5(string_agg(r::text || r.xmin || r.xmax, ',' order by id)) from mdm_relations r)
		|| (select md5(string_agg(b.key || b.xmin, ',' order by key)) from bus_values b)
		|| (select md5(string_agg(relname || c.xmin, ',' order by c.oid)) from pg_class c where relnamespace = 'public'::regnamespace and relkind in ('r', 'v', 'S'))
		|| (select md5(string_agg(rolname, ',' order by rolname)) from pg_roles)`).Scan(&sum))
	return sum
}

func TestAQueryHasItsTime(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	fill(t, db)
	_, err := cypher.Run(t.Context(), db, `MATCH (a), (b), (c), (d), (e), (f), (g), (h) WHERE a._id + b._id + c._id + d._id + e._id + f._id + g._id + h._id < 0 RETURN count(*)`, nil, cypher.Bounds{Time: 100 * time.Millisecond})
	require.Equal(t, problem.Invalid, problem.KindOf(err), "%v", err)
	require.ErrorContains(t, err, "more than 100ms")
	_, err = cypher.Compile("RETURN 1"+strings.Repeat(" + 1", 3000)+" AS x", nil)
	require.NoError(t, err, "a long query is a long statement, and no longer")
	for query, why := range map[string]string{
		"RETURN 1 / 0": "divides by zero", "MATCH (n) WHERE n.identifier =~ '(' RETURN n": "regular expression",
	} {
		_, err := cypher.Run(t.Context(), db, query, nil, cypher.Bounds{})
		require.ErrorContains(t, err, why)
		require.Equal(t, problem.Invalid, problem.KindOf(err))
	}
	answer, err := cypher.Run(t.Context(), db, `MATCH (a), (b), (c), (d) RETURN a.identifier`, nil, cypher.Bounds{})
	require.NoError(t, err)
	require.True(t, answer.Truncated)
	require.Len(t, answer.Rows, cypher.MaxRows)
}

func TestARoleOfTheDatabaseBoundsAQuery(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	fill(t, db)
	_, err := cypher.Run(t.Context(), db, `MATCH (n) RETURN n`, nil, cypher.Bounds{Role: "pg_monitor"})
	require.ErrorContains(t, err, "permission denied", "this one may not read our tables")
	_, err = cypher.Run(t.Context(), db, `MATCH (n) RETURN n`, nil, cypher.Bounds{})
	require.NoError(t, err, "the role ends with the transaction")
}

// FuzzCompile: no query makes the parser fail, and whatever it says stays out of the statement.
func FuzzCompile(f *testing.F) {
	queries, _ := corpus(f)
	for _, query := range queries {
		f.Add(query)
	}
	for _, text := range hostile {
		f.Add("MATCH (n:`" + text + "`) WHERE n.x = '" + text + "' RETURN n AS `" + text + "`")
	}
	f.Fuzz(func(t *testing.T, query string) {
		statement, err := cypher.Compile(query, parameters)
		if err != nil {
			require.NotEqual(t, problem.Internal, problem.KindOf(err))
			return
		}
		for _, bad := range []string{";", "--", "/*", "\\", "$$"} {
			require.NotContains(t, statement.SQL, bad)
		}
		for _, c := range statement.SQL {
			require.Less(t, c, rune(128), "letters of others are arguments")
		}
		require.Zero(t, strings.Count(statement.SQL, "'")%2)
	})
}
