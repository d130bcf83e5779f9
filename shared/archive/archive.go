// Package archive moves old rows from Postgres to an object store, and reads them back.
//
// Each object is a batch of JSON lines, compressed with gzip; an index next to it describes its content. The
// transaction that deletes a batch in Postgres also writes its row in the table archives, after the object was read
// back and compared. So each line is visible in exactly one place, wherever a run is interrupted: an object counts only
// if it has a row.
package archive

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/objects"
	"github.com/littoral-project/littoral/shared/store"
)

// Kind is a kind of archived rows.
type Kind string

// The kinds.
const (
	History      Kind = "history"      // each line is a history.Entry
	Applications Kind = "applications" // deleted ones; each with its jobs and the actions of its policies, as stored
	Topology     Kind = "topology"     // all snapshots except the present one
)

// Kinds lists all kinds.
var Kinds = []Kind{History, Applications, Topology}

// Limits of one object.
const (
	maxBytes = 4 << 20 // of lines, before compression; the last line may exceed it
	maxLines = 5000
)

// Archive is Postgres and the object store for old lines.
type Archive struct {
	db      *store.DB
	objects objects.Store
}

// New returns the archive.
func New(db *store.DB, o objects.Store) *Archive { return &Archive{db: db, objects: o} }

// Index describes an object. It is stored next to the object as JSON, so that an archive can be read without Postgres.
type Index struct {
	Key          string      `json:"key"`
	Kind         Kind        `json:"kind"`
	FirstID      string      `json:"firstId"`
	LastID       string      `json:"lastId"`
	Lines        int         `json:"lines"`
	Bytes        int         `json:"bytes"`
	SHA256       string      `json:"sha256"` // of the stored object
	From         time.Time   `json:"from"`   // of its lines
	To           time.Time   `json:"to"`
	Applications []uuid.UUID `json:"applications,omitempty"` // in its lines
	Events       []string    `json:"events,omitempty"`       // event types in its lines, if they are history
}

// batch is the future content of one object.
type batch struct {
	kind    Kind
	ids     []string
	entries []int64 // ids of history
	lines   bytes.Buffer
	from    time.Time
	to      time.Time
	apps    map[uuid.UUID]bool
	events  map[string]bool
}

// full reports whether the object can take no more lines.
func (b *batch) full() bool { return len(b.ids) >= maxLines || b.lines.Len() >= maxBytes }

func (b *batch) add(id string, at time.Time, line []byte, apps ...uuid.UUID) {
	if len(b.ids) == 0 || at.Before(b.from) {
		b.from = at
	}
	if len(b.ids) == 0 || at.After(b.to) {
		b.to = at
	}
	b.ids = append(b.ids, id)
	b.lines.Write(line)
	b.lines.WriteByte('\n')
	for _, app := range apps {
		b.apps[app] = true
	}
}

const insertArchive = `insert into archives (key, kind, first_id, last_id, first_entry, last_entry, lines, bytes, sha256,
from_at, to_at, applications, events) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)`

// Move archives one batch of lines older than before, and returns their number: 0 if nothing is left, or if another run
// is in progress. At most keep snapshots of the topology stay, however new.
func (a *Archive) Move(ctx context.Context, kind Kind, before time.Time, keep int) (lines int, err error) {
	// The transaction stays open while the object is stored, so that no other run moves the same lines. Moving them
	// twice, also when the transaction is retried, is harmless: the same lines give the same object.
	err = a.db.Tx(ctx, func(ctx context.Context, tx *store.Tx) error {
		lines = 0
		if alone, err := tx.TryLock(ctx, store.LockArchive); err != nil || !alone {
			return err
		}
		b := &batch{kind: kind, apps: map[uuid.UUID]bool{}, events: map[string]bool{}}
		if err := b.read(ctx, tx, before, keep); err != nil || len(b.ids) == 0 {
			return err
		}
		index, err := a.store(ctx, b)
		if err != nil {
			return err
		}
		if err := b.remove(ctx, tx); err != nil {
			return err
		}
		lines = len(b.ids)
		return index.record(ctx, tx, b)
	})
	if err != nil {
		return 0, fmt.Errorf("archive %s: %w", kind, err)
	}
	return lines, nil
}

// store writes the batch and its index to the object store and compares what was stored.
func (a *Archive) store(ctx context.Context, b *batch) (*Index, error) {
	body, err := compress(b.lines.Bytes())
	if err != nil {
		return nil, err
	}
	sum := digest(body)
	apps := slices.AppendSeq(make([]uuid.UUID, 0, len(b.apps)), maps.Keys(b.apps))
	slices.SortFunc(apps, func(x, y uuid.UUID) int { return bytes.Compare(x[:], y[:]) })
	index := &Index{
		Kind: b.kind, FirstID: b.ids[0], LastID: b.ids[len(b.ids)-1], Lines: len(b.ids), Bytes: len(body), SHA256: sum,
		From: b.from.UTC(), To: b.to.UTC(), Applications: apps,
		Events: slices.Sorted(maps.Keys(b.events)),
	}
	// With the checksum in the key, a run that was believed dead cannot overwrite the object of a later one.
	index.Key = fmt.Sprintf("%s/%s/%s-%s.jsonl.gz", b.kind, index.From.Format("2006/01/02"), index.FirstID, sum[:16])
	if err := a.objects.Put(ctx, index.Key, body); err != nil {
		return nil, err
	}
	text, err := json.Marshal(index)
	if err != nil {
		return nil, err
	}
	if err := a.objects.Put(ctx, index.Key+".index.json", text); err != nil {
		return nil, err
	}
	_, err = a.lines(ctx, index.Key, sum)
	return index, err
}

func (i *Index) record(ctx context.Context, tx *store.Tx, b *batch) error {
	var first, last *int64
	if n := len(b.entries); n > 0 {
		first, last = &b.entries[0], &b.entries[n-1]
	}
	_, err := tx.Exec(ctx, insertArchive, i.Key, i.Kind, i.FirstID, i.LastID, first, last, i.Lines, i.Bytes, i.SHA256,
		i.From, i.To, i.Applications, i.Events)
	if err != nil {
		return fmt.Errorf("store the index: %w", err)
	}
	return nil
}

// lines reads an object and returns its lines. It returns an error if the object has changed since it was stored.
func (a *Archive) lines(ctx context.Context, key, sum string) ([]byte, error) {
	body, err := a.objects.Get(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("read the archive: %w", err)
	}
	if digest(body) != sum {
		return nil, fmt.Errorf("read the archive: %s is not what was stored there", key)
	}
	z, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("read the archive: %s: %w", key, err)
	}
	lines, err := io.ReadAll(z)
	if err != nil {
		return nil, fmt.Errorf("read the archive: %s: %w", key, err)
	}
	return lines, nil
}

func compress(lines []byte) ([]byte, error) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(lines); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func digest(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}
