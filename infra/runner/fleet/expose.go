package fleet

import (
	"bufio"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/littoral-project/littoral/infra/runner/prometheus"
	"github.com/littoral-project/littoral/shared/function"
)

// exposition is the media type of the text format that Prometheus scrapes.
const exposition = "text/plain; version=0.0.4; charset=utf-8"

// Expose writes the latest sample of every series, with its timestamp, for a Prometheus that scrapes. The samples of a
// cluster that is cut off do not change, and so become stale there too. The scrape job needs honor_labels to keep the
// labels, and track_timestamps_staleness to end a series at once when it is no longer exposed.
func (f *Fleet) Expose(out io.Writer) error {
	f.rounds.Lock()
	var lines []string
	for _, cluster := range f.series {
		for _, sample := range cluster {
			lines = append(lines, line(sample))
		}
	}
	f.rounds.Unlock()
	slices.Sort(lines)
	w := bufio.NewWriter(out)
	for _, text := range lines {
		if _, err := w.WriteString(text); err != nil {
			return err
		}
	}
	return w.Flush()
}

var escape = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)

// line formats a sample.
func line(s prometheus.Sample) string {
	var b strings.Builder
	b.WriteString(s.Name + "{")
	for _, name := range slices.Sorted(maps.Keys(s.Labels)) {
		b.WriteString(labelName(name) + `="` + escape.Replace(s.Labels[name]) + `",`)
	}
	b.WriteString("} " + strconv.FormatFloat(s.Value, 'g', -1, 64) + " " + strconv.FormatInt(s.At.UnixMilli(), 10) + "\n")
	return b.String()
}

// labelName quotes a name that has other characters than letters, digits and underscores, such as the name of a node
// label.
func labelName(name string) string {
	odd := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_'
	}
	if strings.ContainsFunc(name, odd) {
		return `"` + escape.Replace(name) + `"`
	}
	return name
}

// exposer serves Expose.
type exposer struct{ fleet *Fleet }

func (e *exposer) Handle(out http.ResponseWriter, r *http.Request) error {
	if err := function.NewQuery(r).Err(); err != nil {
		return err
	}
	out.Header().Set("Content-Type", exposition)
	return e.fleet.Expose(out)
}
