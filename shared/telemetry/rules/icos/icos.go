// Package icos keeps rule groups with the prometheus-api service of ICOS: the answer to POST of {"data": {"groups":
// [...]}} contains the name of the new file; DELETE of that name removes it.
//
// The service neither lists its files nor guarantees the same name for the same group, so the files of each group are
// recorded in Postgres (table rule_files). An unchanged group is not sent again. For a changed one, the new file is
// created before the old one is removed, and the old one stays recorded until then. A crash between the answer and the
// record leaves an unknown file: the service offers no way to find it.
package icos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/telemetry/rules"
)

const (
	lock   = `select pg_advisory_xact_lock(hashtextextended('rule_files ' || $1, 0))`
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

// Put sends a group that the service does not have yet, and then removes the group's former files, including those that
// could not be removed before. Callers for the same group wait for each other.
func (s *Store) Put(ctx context.Context, g rules.Group) error {
	id := rules.ID(g.Name)
	content, err := json.Marshal(g)
	if err != nil {
		return fmt.Errorf("encode group %s: %w", g.Name, err)
	}
	var left []string
	err = s.locked(ctx, id, func(ctx context.Context, tx *store.Tx, had known) error {
		if had.file != "" && string(had.content) == string(content) {
			left = had.former
			return nil
		}
		made, err := s.send(ctx, content)
		if err != nil {
			return err
		}
		left = had.files()
		_, err = tx.Exec(ctx, upsert, id, made, content)
		return err
	})
	if err != nil || len(left) == 0 {
		return err
	}
	return s.locked(ctx, id, func(ctx context.Context, tx *store.Tx, has known) error {
		for _, file := range has.former {
			if file == has.file { // the service chose the same name again
				continue
			}
			if err := s.remove(ctx, file); err != nil {
				return err
			}
		}
		_, err := tx.Exec(ctx, clean, id)
		return err
	})
}

// Delete removes the group's files.
func (s *Store) Delete(ctx context.Context, id string) error {
	if !rules.IsID(id) {
		return rules.ErrUnknown(id)
	}
	return s.locked(ctx, id, func(ctx context.Context, tx *store.Tx, has known) error {
		if has.file == "" {
			return rules.ErrUnknown(id)
		}
		for _, file := range has.files() {
			if err := s.remove(ctx, file); err != nil {
				return err
			}
		}
		_, err := tx.Exec(ctx, forget, id)
		return err
	})
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

// locked calls fn with the record of the group, which it locks meanwhile.
func (s *Store) locked(
	ctx context.Context, id string, fn func(ctx context.Context, tx *store.Tx, of known) error,
) error {
	return s.db.Tx(ctx, func(ctx context.Context, tx *store.Tx) error {
		if _, err := tx.Exec(ctx, lock, id); err != nil {
			return fmt.Errorf("lock rule file: %w", err)
		}
		var of known
		err := tx.QueryRow(ctx, find, id).Scan(&of.file, &of.content, &of.former)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return fmt.Errorf("read rule file: %w", err)
		}
		return fn(ctx, tx, of)
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

// remove deletes a file; it succeeds if the file does not exist.
func (s *Store) remove(ctx context.Context, file string) error {
	_, err := s.remote.Do(ctx, http.MethodDelete, "", nil, file)
	if problem.KindOf(err) == problem.NotFound {
		return nil
	}
	return err
}
