// Package folder keeps objects as files below a directory.
package folder

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/littoral-project/littoral/shared/durable"
	"github.com/littoral-project/littoral/shared/objects"
)

// Store is a directory. Files of other programs in it are objects too if their paths are valid keys.
type Store struct{ dir string }

// New returns the store below dir, which is created with the first object.
func New(dir string) *Store { return &Store{dir} }

// Put implements objects.Store. The object is on disk when it returns.
func (s *Store) Put(_ context.Context, key string, body []byte) error {
	if err := objects.CheckKey(key); err != nil {
		return err
	}
	path := s.path(key)
	if err := durable.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return fmt.Errorf("store %s: %w", key, err)
	}
	if err := durable.WriteFile(path, body, 0o600); err != nil {
		return fmt.Errorf("store %s: %w", key, err)
	}
	return nil
}

// Get implements objects.Store.
func (s *Store) Get(_ context.Context, key string) ([]byte, error) {
	if err := objects.CheckKey(key); err != nil {
		return nil, err
	}
	body, err := os.ReadFile(s.path(key))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, objects.NotFound(key)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", key, err)
	}
	return body, nil
}

// List implements objects.Store.
func (s *Store) List(ctx context.Context, prefix string) ([]string, error) {
	all, err := s.Describe(ctx, prefix)
	return objects.Keys(all), err
}

// Describe implements objects.Store. A file that is being written has a name that is not a valid key.
func (s *Store) Describe(_ context.Context, prefix string) ([]objects.Info, error) {
	var all []objects.Info
	err := filepath.WalkDir(s.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(s.dir, path)
		if err != nil {
			return err
		}
		key := filepath.ToSlash(name)
		if !strings.HasPrefix(key, prefix) || objects.CheckKey(key) != nil {
			return nil
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil // deleted meanwhile
		}
		if err == nil {
			all = append(all, objects.Info{Key: key, Size: info.Size(), ModifiedAt: info.ModTime()})
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list %s: %w", prefix, err)
	}
	slices.SortFunc(all, func(a, b objects.Info) int { return strings.Compare(a.Key, b.Key) })
	return all, nil
}

// Delete implements objects.Store.
func (s *Store) Delete(_ context.Context, key string) error {
	if err := objects.CheckKey(key); err != nil {
		return err
	}
	if err := os.Remove(s.path(key)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("delete %s: %w", key, err)
	}
	return nil
}

func (s *Store) path(key string) string { return filepath.Join(s.dir, filepath.FromSlash(key)) }
