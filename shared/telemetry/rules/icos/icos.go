// Package icos keeps rule groups with the prometheus-api service of ICOS: the answer to POST of {"data": {"groups":
// [...]}} contains the name of the new file; DELETE of that name removes it.
//
// The service neither lists its files nor guarantees the same name for the same group, so the files of each group are
// recorded in Postgres (table rule_files). An unchanged group is not sent again. For a changed one, the new file is
// created before the old one is removed, and the old one stays recorded until then. Files are made and removed while the
// group is claimed, and recorded in a transaction of their own: when that runs again, no second file is made. A crash
// between the answer and the record leaves an unknown file: the service offers no way to find it.
package icos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/telemetry/rules"
)

const (
	find   = `select file, content, former from rule_files where id = $1`
	upsert = `insert into rule_files (id, file, content) values ($1, $2, $3) on conflict (id) do update
set file = excluded.file, content = excluded.content, former = array_append(rule_files.former, rule_files.file),
	updated_at = now()`
	clean      = `update rule_files set former = '{}' where id = $1`
	forget     = `delete from rule_files where id = $1`
	list       = `select content from rule_files order by id collate "C"`
	media      = "application/json"
	emptyFault = "the rules service did not say which file it made"
)

// Store is the service, with our record of its files.
type Store struct {
	remote *rules.Remote
	db     *store.DB
}

var _ rules.Store = (*Store)(nil)

// New returns the service at the remote, whose base is the full URL of its rules, such as
// http://host:9099/api/v1/rules.
func New(remote *rules.Remote, db *store.DB) *Store { return &Store{remote, db} }

// claimed is how long one change of a group may take.
const claimed = time.Minute

// Put sends a group that the service does not have yet, and then removes the group's former files, including those that
// could not be removed before. The error is store.ErrClaimed while somebody else changes the group.
func (s *Store) Put(ctx context.Context, g rules.Group) error {
	id := rules.ID(g.Name)
	content, err := json.Marshal(g)
	if err != nil {
		return fmt.Errorf("encode group %s: %w", g.Name, err)
	}
	had, claim, err := s.claim(ctx, id)
	if err != nil {
		return err
	}
	return s.db.Release(ctx, claim, claim.Do(ctx, func(ctx context.Context) error {
		now, left := had.file, had.former
		if now == "" || string(had.content) != string(content) {
			if now, err = s.send(ctx, content); err != nil {
				return err
			}
			if err := s.record(ctx, upsert, id, now, content); err != nil {
				return err
			}
			left = had.files()
		}
		left = slices.DeleteFunc(slices.Clone(left), func(file string) bool { return file == now }) // chosen again
		if len(left) == 0 {
			return nil
		}
		if err := s.removeAll(ctx, left); err != nil {
			return err
		}
		return s.record(ctx, clean, id)
	}))
}

// Delete removes the group's files. The error is NotFound, or store.ErrClaimed while somebody else changes the group.
func (s *Store) Delete(ctx context.Context, id string) error {
	if !rules.IsID(id) {
		return rules.ErrUnknown(id)
	}
	has, claim, err := s.claim(ctx, id)
	if err != nil {
		return err
	}
	return s.db.Release(ctx, claim, claim.Do(ctx, func(ctx context.Context) error {
		if has.file == "" {
			return rules.ErrUnknown(id)
		}
		if err := s.removeAll(ctx, has.files()); err != nil {
			return err
		}
		return s.record(ctx, forget, id)
	}))
}

// List returns the groups that were sent.
func (s *Store) List(ctx context.Context) ([]rules.Group, error) {
	read := func(row pgx.CollectableRow) (g rules.Group, err error) {
		var content []byte
		if err := row.Scan(&content); err != nil {
			return g, err
		}
		return g, json.Unmarshal(content, &g)
	}
	return store.Collect(ctx, s.db, "read rule files", read, list)
}

// known is the record of a group: nothing, or its file and former files that may still exist.
type known struct {
	file    string
	content []byte
	former  []string
}

// files are all files that the service may have for the group.
func (k known) files() []string {
	if k.file == "" {
		return nil
	}
	return append(slices.Clone(k.former), k.file)
}

// claim claims the group and returns what is recorded of it.
func (s *Store) claim(ctx context.Context, id string) (of known, claim *store.Claim, err error) {
	err = s.db.Tx(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		if claim, err = tx.Claim(ctx, "rule file "+id, claimed); err != nil {
			return err
		}
		of = known{}
		err = tx.QueryRow(ctx, find, id).Scan(&of.file, &of.content, &of.former)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return fmt.Errorf("read rule file: %w", err)
		}
		return nil
	})
	return of, claim, err
}

// record writes what became of the group.
func (s *Store) record(ctx context.Context, sql string, args ...any) error {
	return s.db.Tx(ctx, func(ctx context.Context, tx *store.Tx) error {
		if _, err := tx.Exec(ctx, sql, args...); err != nil {
			return fmt.Errorf("record rule file: %w", err)
		}
		return nil
	})
}

// send posts the group and returns the name of the file that the service created.
func (s *Store) send(ctx context.Context, group []byte) (string, error) {
	body := append(append([]byte(`{"data":{"groups":[`), group...), `]}}`...)
	answer, err := s.remote.Do(ctx, http.MethodPost, media, body)
	if err != nil {
		return "", err
	}
	var made struct{ File string }
	if err := json.Unmarshal(answer, &made); err != nil || made.File == "" {
		return "", problem.Wrap(problem.Unavailable, err, emptyFault)
	}
	return made.File, nil
}

func (s *Store) removeAll(ctx context.Context, files []string) error {
	for _, file := range files {
		if err := s.remove(ctx, file); err != nil {
			return err
		}
	}
	return nil
}

// remove deletes a file; it succeeds if the file does not exist.
func (s *Store) remove(ctx context.Context, file string) error {
	_, err := s.remote.Do(ctx, http.MethodDelete, "", nil, file)
	if problem.KindOf(err) == problem.NotFound {
		return nil
	}
	return err
}
