package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/littoral-project/littoral/shared/generator"
)

type generateCommand struct {
	Seed         uint64        `default:"1" placeholder:"N" help:"The same seed makes the same world (default ${default})."`
	Nodes        int           `default:"50" placeholder:"N" help:"How many nodes (default ${default})."`
	Clusters     int           `default:"0" placeholder:"N" help:"How many clusters (default: one for about twenty nodes)."`
	Applications int           `default:"10" placeholder:"N" help:"How many applications (default ${default})."`
	Users        int           `default:"100" placeholder:"N" help:"How many users, who move (default ${default})."`
	For          time.Duration `default:"24h" placeholder:"TIME" help:"How long a time is measured (default ${default})."`
	Step         time.Duration `default:"1m" placeholder:"TIME" help:"Time between two measurements (default ${default})."`
	LegacyFaults bool          `help:"Write data.csv and topology.json with the oddities of CODECO's own generator."`
	Out          string        `default:"." type:"path" placeholder:"DIR" help:"Where the files go (default: here)."`
	outputFlag
}

// Run writes the files.
func (c *generateCommand) Run(s *session) error {
	o := generator.Default()
	o.Seed, o.Nodes, o.Clusters, o.Applications, o.Users = c.Seed, c.Nodes, c.Clusters, c.Applications, c.Users
	if c.Step < time.Second || c.For < c.Step || c.For/c.Step > 1_000_000 {
		return errors.New("--step is a second or more, and --for at least as much, up to a million steps")
	}
	w, err := generator.New(o)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(c.Out, 0o755); err != nil { // for everyone to read
		return err
	}
	events, err := w.Events(1000)
	if err != nil {
		return err
	}
	objects, err := w.Run(c.For, c.Step).Objects()
	if err != nil {
		return err
	}
	files := []generated{
		{"taxonomy.json", of(w.Taxonomy)},
		{"network.json", of(w.NetworkTopology)},
		{"topology.json", of(func() ([]byte, error) { return w.TopologyJSON(c.LegacyFaults) })},
		{"codecoapps.yaml", of(w.CodecoApps)},
		{"data.csv", func(to io.Writer) error { return w.Run(c.For, c.Step).WriteCSV(to, c.LegacyFaults) }},
		{"metrics.prom", func(to io.Writer) error { return w.Run(c.For, c.Step).WriteMetrics(to) }},
	}
	for i, list := range events {
		files = append(files, generated{fmt.Sprintf("events-%d.json", i+1), of(func() ([]byte, error) { return list, nil })})
	}
	for _, plural := range []string{"acm-mons", "mdm-mons", "netma-mons"} {
		files = append(files, generated{plural + ".yaml", of(func() ([]byte, error) { return objects[plural], nil })})
	}
	made := make([]madeFile, len(files))
	names, rows := make([]string, len(files)), make([][]string, len(files))
	for i, f := range files {
		m := madeFile{File: filepath.Join(c.Out, f.name)}
		if m.Bytes, err = f.create(c.Out); err != nil {
			return err
		}
		size := float64(m.Bytes)
		made[i], names[i], rows[i] = m, m.File, []string{bytesText(&size), strconv.FormatInt(m.Bytes, 10), m.File}
	}
	if done, err := s.said(made, names...); done {
		return err
	}
	return s.newTable("SIZE", "+BYTES", "FILE").write(rows...)
}

// madeFile is one element of "generate -o json".
type madeFile struct {
	File  string `json:"file"`
	Bytes int64  `json:"bytes"`
}

// Help is the long help of generate.
func (generateCommand) Help() string {
	return "With -o name it prints the paths of the files that it has written.\n\nExample: littoral generate --nodes 12 --out world"
}

// generated is a file that is made.
type generated struct {
	name  string
	write func(io.Writer) error
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

func (g generated) create(dir string) (size int64, err error) {
	file, err := os.Create(filepath.Join(dir, g.name))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if err := g.write(file); err != nil {
		return 0, err
	}
	return file.Seek(0, io.SeekCurrent)
}
