// Package files keeps logs in a folder: for a laptop, whose programs write and read it in one process.
//
// Each application has a folder with a file of JSON lines for each hour. The oldest files are deleted when all together are
// too large, or after a time.
package files

import (
	"bufio"
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/littoral-project/littoral/shared/logs"
	"github.com/littoral-project/littoral/shared/problem"
)

// Options of a Store.
type Options struct {
	Dir  string
	Size int64         // bytes of all files together; 0 = 64 MiB
	Kept time.Duration // 0 = a week
}

// Store keeps logs in a folder. Several may read the same folder, and one may write it.
type Store struct {
	o  Options
	mu sync.Mutex
	// written counts the bytes since the files were last looked at.
	written int64
}

const (
	defaultSize = 64 << 20
	defaultKept = 7 * 24 * time.Hour
	hour        = "2006010215" // name of a file
	suffix      = ".jsonl"
	maxRecord   = 1 << 20 // bytes of one line in a file
)

// New returns the store in a folder, which is made when something is written.
func New(o Options) *Store {
	o.Size, o.Kept = cmp.Or(o.Size, defaultSize), cmp.Or(o.Kept, defaultKept)
	return &Store{o: o, written: o.Size} // the first write looks at what is there
}

// folder is that of an application, whose name may be any text.
func (s *Store) folder(application string) string {
	return filepath.Join(s.o.Dir, hex.EncodeToString([]byte(application)))
}

// Write appends entries to the files of their hours.
func (s *Store) Write(_ context.Context, entries []logs.Entry) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	texts := map[string][]byte{}
	for _, e := range entries {
		e = logs.Clean(e)
		line, err := json.Marshal(e)
		if err != nil {
			return fmt.Errorf("logs: %w", err)
		}
		file := filepath.Join(s.folder(e.Application), e.At.Format(hour)+suffix)
		texts[file] = append(append(texts[file], line...), '\n')
	}
	for file, text := range texts {
		if err := add(file, text); err != nil {
			return problem.Wrap(problem.Unavailable, err, "logs cannot be written")
		}
		s.written += int64(len(text))
	}
	if s.written > s.o.Size/16 {
		s.written = 0
		return s.prune(time.Now())
	}
	return nil
}

// add appends whole lines to a file. A process that was killed may have left the beginning of one.
func add(file string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if info, err := f.Stat(); err == nil && info.Size() > 0 {
		last := make([]byte, 1)
		if _, err := f.ReadAt(last, info.Size()-1); err == nil && last[0] != '\n' {
			text = append([]byte{'\n'}, text...)
		}
	}
	_, err = f.Write(text)
	return err
}

type file struct {
	path string
	hour time.Time
	size int64
}

// list returns the files of a folder of an application, oldest first.
func list(folder string) ([]file, error) {
	found, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var files []file
	for _, f := range found {
		at, err := time.Parse(hour, strings.TrimSuffix(f.Name(), suffix))
		if err != nil {
			continue // somebody else's
		}
		info, err := f.Info()
		if err != nil {
			continue // it has just been deleted
		}
		files = append(files, file{filepath.Join(folder, f.Name()), at, info.Size()})
	}
	return files, nil
}

// prune deletes what is too old or too much.
func (s *Store) prune(now time.Time) error {
	folders, err := os.ReadDir(s.o.Dir)
	if err != nil {
		return problem.Wrap(problem.Unavailable, err, "logs cannot be listed")
	}
	var all []file
	var size int64
	for _, folder := range folders {
		files, err := list(filepath.Join(s.o.Dir, folder.Name()))
		if err != nil {
			continue // no folder
		}
		all = append(all, files...)
	}
	for _, f := range all {
		size += f.size
	}
	slices.SortFunc(all, func(a, b file) int { return a.hour.Compare(b.hour) })
	for _, f := range all {
		if size <= s.o.Size && now.Sub(f.hour) <= s.o.Kept {
			break
		}
		if err := os.Remove(f.path); err != nil {
			return problem.Wrap(problem.Unavailable, err, "old logs cannot be deleted")
		}
		size -= f.size
		_ = os.Remove(filepath.Dir(f.path)) // when it was the last
	}
	return nil
}

// Read reads the files of the hours in question, and no more of them than the limit needs.
func (s *Store) Read(ctx context.Context, q logs.Query) ([]logs.Entry, error) {
	if err := q.Check(); err != nil {
		return nil, err
	}
	files, err := list(s.folder(q.Application))
	if err != nil {
		return nil, problem.Wrap(problem.Unavailable, err, "logs cannot be read")
	}
	if q.Newest {
		slices.Reverse(files)
	}
	found := []logs.Entry{}
	for _, f := range files {
		if f.hour.Add(time.Hour).Before(q.From) || !q.To.IsZero() && !f.hour.Before(q.To) {
			continue
		}
		if len(found) >= q.Limit || ctx.Err() != nil {
			break
		}
		if found, err = read(f.path, q, found); err != nil {
			return nil, problem.Wrap(problem.Unavailable, err, "logs cannot be read")
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, problem.Wrap(problem.Unavailable, err, "logs were not read in time")
	}
	return q.Limited(found), nil
}

func read(path string, q logs.Query, into []logs.Entry) ([]logs.Entry, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return into, nil // it was too old
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, maxRecord)
	for lines.Scan() {
		var e logs.Entry
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			continue // the beginning of one
		}
		if e.At = e.At.UTC(); q.Selects(e) {
			into = append(into, e)
		}
	}
	return into, lines.Err()
}
