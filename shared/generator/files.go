package generator

import (
	"fmt"
	"io"
	"time"
)

// Measured is for how long a world is measured, and how.
type Measured struct {
	For, Step time.Duration
	Legacy    bool // with the oddities of CODECO's own generator
}

// File is one that a world is written to. Nothing is made before it is written.
type File struct {
	Name, Type string
	Write      func(to io.Writer) error
}

// eventsInFile is how many events POST /mdm/publish/event takes at once.
const eventsInFile = 1000

// Files are all files of a world.
func (w *World) Files(m Measured) []File {
	const json, yaml = "application/json", "application/yaml"
	files := []File{
		{"taxonomy.json", json, of(w.Taxonomy)},
		{"network.json", json, of(w.NetworkTopology)},
		{"topology.json", json, of(func() ([]byte, error) { return w.TopologyJSON(m.Legacy) })},
		{"codecoapps.yaml", yaml, of(w.CodecoApps)},
		{"data.csv", "text/csv; charset=utf-8", func(to io.Writer) error { return w.Run(m.For, m.Step).WriteCSV(to, m.Legacy) }},
		{"metrics.prom", "text/plain; version=0.0.4; charset=utf-8", func(to io.Writer) error { return w.Run(m.For, m.Step).WriteMetrics(to) }},
	}
	for i := range (w.events() + eventsInFile - 1) / eventsInFile {
		files = append(files, File{fmt.Sprintf("events-%d.json", i+1), json, of(func() ([]byte, error) {
			lists, err := w.Events(eventsInFile)
			if err != nil {
				return nil, err
			}
			return lists[i], nil
		})})
	}
	for _, k := range kindsOfObjects {
		files = append(files, File{k.plural + ".yaml", yaml, of(func() ([]byte, error) {
			objects, err := w.Run(m.For, m.Step).Objects()
			return objects[k.plural], err
		})})
	}
	return files
}

// events is how many Events returns.
func (w *World) events() int {
	n := len(w.Clusters) + 2*len(w.Nodes) + len(w.Links)
	for _, a := range w.Applications {
		n += 1 + 2*len(a.Services) + len(a.Channels)
	}
	return n
}

// of writes what is made at once.
func of(build func() ([]byte, error)) func(io.Writer) error {
	return func(to io.Writer) error {
		text, err := build()
		if err != nil {
			return err
		}
		_, err = to.Write(text)
		return err
	}
}
