package otlp

import (
	"bytes"
	"maps"
	"slices"
	"strconv"
	"strings"
)

var (
	escapeLabel = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
	escapeHelp  = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
)

// Text writes samples in the text format of Prometheus, those of one name together.
func Text(samples []Sample) []byte {
	byName := map[string][]Sample{}
	for _, s := range samples {
		byName[s.Name] = append(byName[s.Name], s)
	}
	var b bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		list := byName[name]
		if help := list[0].Help; help != "" {
			b.WriteString("# HELP " + name + " " + escapeHelp.Replace(help) + "\n")
		}
		kind := "gauge"
		if list[0].Counter {
			kind = "counter"
		}
		b.WriteString("# TYPE " + name + " " + kind + "\n")
		for _, s := range list {
			b.WriteString(name)
			for i, label := range slices.Sorted(maps.Keys(s.Labels)) {
				b.WriteString(map[bool]string{true: "{", false: ","}[i == 0] + label + `="` + escapeLabel.Replace(s.Labels[label]) + `"`)
			}
			if len(s.Labels) > 0 {
				b.WriteString("}")
			}
			b.WriteString(" " + strconv.FormatFloat(s.Value, 'g', -1, 64) + "\n")
		}
	}
	return b.Bytes()
}
