package updates

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/netip"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/alto"
	"github.com/littoral-project/littoral/shared/netma/exposure"
	"github.com/littoral-project/littoral/shared/netma/view"
	"github.com/littoral-project/littoral/shared/store"
)

// every is the time between two questions, while any stream is open.
const every = time.Second

// Hub has the streams of an instance. Without any it does nothing.
type Hub struct {
	db *store.DB

	mu      sync.Mutex
	streams map[uuid.UUID]row // as they were read last
	known   map[string]*resource
	stop    context.CancelFunc
	now     snapshot
	changed chan struct{} // closed, and replaced, when there is news
	failed  error         // of the last question
	cache   view.Cache
}

// snapshot is the network as it was found.
type snapshot struct {
	view   *view.View
	number int
}

// NewHub returns a hub without streams.
func NewHub(db *store.DB) *Hub {
	return &Hub{db: db, streams: map[uuid.UUID]row{}, known: map[string]*resource{}, changed: make(chan struct{})}
}

// resource is one that streams have, whoever they are of. Only its present state is kept, and what led to it from the one before.
type resource struct {
	exposure.Resource
	caller  netip.Addr
	patches string // their media type
	uses    int    // by substreams; guarded by the hub

	mu      sync.Mutex
	seen    int // the number of the snapshot that it was made of
	version int
	text    []byte
	hash    string
	patch   json.RawMessage // from the version before
	err     error
}

// state is the resource as it is in a snapshot, or in a newer one that another stream has looked at.
func (r *resource) state(now snapshot) (version int, text []byte, hash string, patch json.RawMessage, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.number > r.seen {
		r.seen = now.number
		r.refresh(now.view)
	}
	return r.version, r.text, r.hash, r.patch, r.err
}

func (r *resource) refresh(v *view.View) {
	text, err := r.Document(v, r.caller, time.Now())
	if r.err = err; err != nil || string(text) == string(r.text) {
		return
	}
	r.patch = nil
	if r.text != nil {
		between := alto.Patch
		if r.patches == alto.JSONPatch {
			between = alto.Operations
		}
		if r.patch, r.err = between(r.text, text); r.err != nil {
			return
		}
		if len(r.patch) >= len(text) {
			r.patch = nil // the whole is shorter
		}
	}
	sum := sha256.Sum256(text)
	r.version, r.text, r.hash = r.version+1, text, base64.RawURLEncoding.EncodeToString(sum[:hashBytes])
}

// hashBytes of a hash, which names a state among those of one resource.
const hashBytes = 9

// open stores the stream and counts it; the first one begins the questions.
func (h *Hub) open(ctx context.Context, o Opening) (row, error) {
	v, err := h.cache.Get(ctx, h.db)
	if err != nil {
		return row{}, store.Classify(err)
	}
	r := row{uuid.New(), 1, o.Substreams}
	err = h.db.Tx(ctx, func(ctx context.Context, tx *store.Tx) error {
		if _, err := tx.Exec(ctx, forget); err != nil {
			return store.Classify(err)
		}
		_, err := tx.Exec(ctx, insert, r.ID, o.Owner, o.Substreams, o.Until)
		return store.Classify(err)
	})
	if err != nil {
		return r, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.streams[r.ID] = r
	if len(h.streams) == 1 {
		ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
		h.stop, h.failed = stop, nil
		h.now = snapshot{v, h.now.number + 1}
		go h.ask(ctx)
	}
	return r, nil
}

// close forgets the stream, here and in the store.
func (h *Hub) close(id uuid.UUID) {
	h.mu.Lock()
	delete(h.streams, id)
	if len(h.streams) == 0 {
		h.stop()
	}
	h.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second) // the caller's is over
	defer cancel()
	_, _ = h.db.Exec(ctx, remove, id) // it ends by its time
}

// take returns the resource of a substream, which release gives back.
func (h *Hub) take(s alto.Substream, caller netip.Addr) (string, *resource) {
	found, _ := exposure.ResourceOf(s) // it was found when it was asked for
	key := s.ResourceID + "\n" + s.Patches + "\n" + string(s.Input)
	if found.Caller {
		key += "\n" + caller.String()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.known[key]
	if r == nil {
		r = &resource{Resource: found, caller: caller, patches: cmp.Or(s.Patches, alto.MergePatch)}
		h.known[key] = r
	}
	r.uses++
	return key, r
}

func (h *Hub) release(key string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if r := h.known[key]; r != nil {
		if r.uses--; r.uses == 0 {
			delete(h.known, key)
		}
	}
}

// present returns the network and the stream as they were read last, and what is closed when there is news.
func (h *Hub) present(id uuid.UUID) (now snapshot, r row, wait <-chan struct{}, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now, h.streams[id], h.changed, h.failed
}

// ask looks for changes until there is no stream any more, or Postgres fails: then every stream ends.
func (h *Hub) ask(ctx context.Context) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		err := h.look(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			h.tell(ctx, func() { h.failed = err })
			return
		}
	}
}

// look asks once.
func (h *Hub) look(ctx context.Context) error {
	h.mu.Lock()
	ids := make([]uuid.UUID, 0, len(h.streams))
	for id := range h.streams {
		ids = append(ids, id)
	}
	h.mu.Unlock()
	rows, err := store.Collect(ctx, h.db, "read streams", pgx.RowToStructByName[row], selectMany, ids)
	if err != nil {
		return err
	}
	v, err := h.cache.Get(ctx, h.db)
	if err != nil {
		return err
	}
	read := make(map[uuid.UUID]row, len(rows))
	for _, r := range rows {
		read[r.ID] = r
	}
	h.mu.Lock()
	news := v != h.now.view
	for _, id := range ids {
		was, open := h.streams[id]
		is, there := read[id]
		news = news || open && (!there || is.Revision != was.Revision)
	}
	h.mu.Unlock()
	if !news {
		return nil
	}
	h.tell(ctx, func() {
		if v != h.now.view {
			h.now = snapshot{v, h.now.number + 1}
		}
		for _, id := range ids {
			was, open := h.streams[id]
			if !open {
				continue
			}
			is, there := read[id]
			if !there {
				is = row{ID: id, Revision: was.Revision + 1} // its time is over
			}
			h.streams[id] = is
		}
	})
	return nil
}

// tell changes what streams look at, unless another stream began anew meanwhile.
func (h *Hub) tell(ctx context.Context, change func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	change()
	close(h.changed)
	h.changed = make(chan struct{})
}
