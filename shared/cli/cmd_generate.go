package cli

import (
	"errors"
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
	files := w.Files(generator.Measured{For: c.For, Step: c.Step, Legacy: c.LegacyFaults})
	made := make([]madeFile, len(files))
	names, rows := make([]string, len(files)), make([][]string, len(files))
	for i, f := range files {
		m := madeFile{File: filepath.Join(c.Out, f.Name)}
		if m.Bytes, err = create(f, c.Out); err != nil {
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

// create writes a file of a world.
func create(f generator.File, dir string) (size int64, err error) {
	file, err := os.Create(filepath.Join(dir, f.Name))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if err := f.Write(file); err != nil {
		return 0, err
	}
	return file.Seek(0, io.SeekCurrent)
}
