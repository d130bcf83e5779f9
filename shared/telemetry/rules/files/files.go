// Package files keeps each rule group as its own file in a directory of Prometheus' rule files.
//
// Files from other sources stay unchanged. A file is replaced atomically, so a reader never sees half of one.
package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/littoral-project/littoral/shared/durable"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/telemetry/rules"
)

// Store is a directory of rule files.
type Store struct {
	dir    string
	reload string
	http   *http.Client
}

var _ rules.Store = (*Store)(nil)

const extension = ".yaml"

// New returns the store in dir, which it creates if it is missing. After each change it sends POST to the URL reload,
// unless that is empty: Prometheus reads rule files only on request (its path is /-/reload).
func New(dir, reload string, client *http.Client) (*Store, error) {
	if dir == "" {
		return nil, errors.New("RULES_DIR is not set")
	}
	if _, err := url.Parse(reload); err != nil {
		return nil, fmt.Errorf("RULES_RELOAD_URL: %w", err)
	}
	if err := durable.MkdirAll(dir, 0o755); err != nil { // readable for Prometheus, perhaps another account
		return nil, fmt.Errorf("RULES_DIR: %w", err)
	}
	return &Store{dir: dir, reload: reload, http: client}, nil
}

// Put writes the group's file. If the file is already the same it is not written, but Prometheus is still asked to
// reload: the last request may have failed.
func (s *Store) Put(ctx context.Context, g rules.Group) error {
	body, err := yaml.Marshal(rules.Groups{Groups: []rules.Group{g}})
	if err != nil {
		return fmt.Errorf("encode group %s: %w", g.Name, err)
	}
	path := s.path(rules.ID(g.Name))
	if have, err := os.ReadFile(path); err != nil || string(have) != string(body) {
		if err := durable.WriteFile(path, body, 0o644); err != nil { // readable for Prometheus
			return away(err)
		}
	}
	return s.notifyPrometheus(ctx)
}

// Delete removes the group's file. Even if there is none, Prometheus is asked to reload, as in Put.
func (s *Store) Delete(ctx context.Context, id string) error {
	if !rules.IsID(id) {
		return rules.ErrUnknown(id)
	}
	removed := os.Remove(s.path(id))
	if removed != nil && !errors.Is(removed, fs.ErrNotExist) {
		return away(removed)
	}
	if err := s.notifyPrometheus(ctx); err != nil {
		return err
	}
	if removed != nil {
		return rules.ErrUnknown(id)
	}
	return nil
}

// List reads the files that are named after the id of the group in them.
func (s *Store) List(context.Context) ([]rules.Group, error) {
	entries, err := os.ReadDir(s.dir) // sorted by name, so by id
	if err != nil {
		return nil, away(err)
	}
	var list []rules.Group
	for _, entry := range entries {
		id, ok := strings.CutSuffix(entry.Name(), extension)
		if !ok || !rules.IsID(id) {
			continue
		}
		body, err := os.ReadFile(filepath.Join(s.dir, entry.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue // just deleted
		}
		if err != nil {
			return nil, away(err)
		}
		var content rules.Groups
		if yaml.Unmarshal(body, &content) == nil && len(content.Groups) == 1 && rules.ID(content.Groups[0].Name) == id {
			list = append(list, content.Groups[0])
		}
	}
	slices.SortFunc(list, func(a, b rules.Group) int { return strings.Compare(rules.ID(a.Name), rules.ID(b.Name)) })
	return list, nil
}

func (s *Store) path(id string) string { return filepath.Join(s.dir, id+extension) }

// notifyPrometheus makes Prometheus reload its rule files.
func (s *Store) notifyPrometheus(ctx context.Context) error {
	if s.reload == "" {
		return nil
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.reload, nil)
	if err != nil {
		return err
	}
	resp, err := s.http.Do(req)
	if err != nil {
		return problem.Wrap(
			problem.Unavailable,
			err,
			"the rule files are written, but Prometheus does not hear of them; try again",
		)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode/100 == 2 {
		return nil
	}
	answer, _ := io.ReadAll(io.LimitReader(resp.Body, 500))
	cause := fmt.Errorf("POST %s: %s: %s", s.reload, resp.Status, strings.TrimSpace(string(answer)))
	return problem.Wrap(problem.Unavailable, cause,
		"the rule files are written, but Prometheus does not read them (%d); try again", resp.StatusCode)
}

func away(err error) error {
	return problem.Wrap(problem.Unavailable, err, "the directory of rule files cannot be used; try again")
}
