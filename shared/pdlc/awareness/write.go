package awareness

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/littoral-project/littoral/shared/pdlc/profile"
)

// byNode are the scores of each node by profile, and the profiles in order.
func byNode(scores []Score) (names []string, by map[[2]string]map[string]*float64) {
	by = map[[2]string]map[string]*float64{}
	for _, s := range scores {
		if len(names) == 0 || names[len(names)-1] != s.Profile { // they are listed by profile
			names = append(names, s.Profile)
		}
		at := [2]string{s.Cluster, s.Node}
		if by[at] == nil {
			by[at] = map[string]*float64{}
		}
		by[at][s.Profile] = s.Score
	}
	return names, by
}

func text(v *float64) string {
	if v == nil {
		return ""
	}
	return strconv.FormatFloat(*v, 'g', 6, 64)
}

// WriteCSV writes a line for each node: when, which, its scores, and the metrics that they came of. What is not known is empty.
func WriteCSV(out io.Writer, nodes []Node, scores []Score) error {
	names, by := byNode(scores)
	w := csv.NewWriter(out)
	head := append([]string{"time", "node", "cluster"}, names...)
	for _, m := range profile.Metrics {
		head = append(head, m.Name)
	}
	if err := w.Write(head); err != nil {
		return err
	}
	for _, n := range nodes {
		line := []string{n.At.UTC().Format(time.RFC3339), n.Name, n.Cluster}
		for _, name := range names {
			line = append(line, text(by[[2]string{n.Cluster, n.Name}][name]))
		}
		for _, m := range profile.Metrics {
			v, known := n.Metrics[m.Name]
			if !known {
				line = append(line, "")
				continue
			}
			line = append(line, text(&v))
		}
		if err := w.Write(line); err != nil {
			return err
		}
	}
	w.Flush()
	return w.Error()
}

// WriteObjects writes an object of Kubernetes for each node, beside those that CODECO's generator makes for the other components:
// pdlc-mons of codeco.com/v1, <node>-object in he-codeco-pdlc.
func WriteObjects(out io.Writer, nodes []Node, scores []Score) error {
	names, by := byNode(scores)
	for _, n := range nodes {
		var spec strings.Builder
		for _, name := range names {
			if v := by[[2]string{n.Cluster, n.Name}][name]; v != nil {
				fmt.Fprintf(&spec, "    %s: %q\n", strings.ReplaceAll(name, "-", "_"), text(v))
			}
		}
		if spec.Len() == 0 {
			spec.WriteString("    {}\n")
		}
		_, err := fmt.Fprintf(out, "---\napiVersion: codeco.com/v1\nkind: PdlcMon\nmetadata:\n  name: %q\n  namespace: he-codeco-pdlc\nspec:\n  node_name: %q\n  cluster: %q\n  scores:\n%s",
			n.Name+"-object", n.Name, n.Cluster, spec.String())
		if err != nil {
			return err
		}
	}
	return nil
}
