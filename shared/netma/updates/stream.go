package updates

import (
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/alto"
	"github.com/littoral-project/littoral/shared/feed"
	"github.com/littoral-project/littoral/shared/netma/exposure"
	"github.com/littoral-project/littoral/shared/netma/view"
	"github.com/littoral-project/littoral/shared/sse"
)

// Stream is an open stream. It is not safe for use by several goroutines.
type Stream struct {
	ID     uuid.UUID
	hub    *Hub
	caller netip.Addr
	parts  []*substream // by their ids
	read   int          // the revision that parts are of
}

// substream is a resource, and what the client has of it.
type substream struct {
	alto.Substream
	key      string
	resource *resource
	version  int    // 0: nothing
	hash     string // of what the client has
}

// Open begins a stream. Close must be called at its end. What the client has already, as the id of its last event says, is not sent again.
func (h *Hub) Open(ctx context.Context, o Opening) (*Stream, error) {
	r, err := h.open(ctx, o)
	if err != nil {
		return nil, err
	}
	s := &Stream{ID: r.ID, hub: h, caller: o.Caller, read: r.Revision}
	s.set(r.Substreams)
	if had := strings.Split(o.Last, "."); len(had) == len(s.parts) {
		for i, p := range s.parts {
			p.hash = had[i]
		}
	}
	return s, nil
}

// Close ends the stream.
func (s *Stream) Close() {
	for _, p := range s.parts {
		s.hub.release(p.key)
	}
	s.hub.close(s.ID)
}

// set makes the parts those that are wanted, and says which are new and which are gone.
func (s *Stream) set(wanted []alto.Substream) (started, stopped []string) {
	s.parts = slices.DeleteFunc(s.parts, func(p *substream) bool {
		stays := slices.ContainsFunc(wanted, func(w alto.Substream) bool { return same(w, p.Substream) })
		if !stays {
			stopped = append(stopped, p.ID)
			s.hub.release(p.key)
		}
		return !stays
	})
	for _, w := range wanted {
		if !slices.ContainsFunc(s.parts, func(p *substream) bool { return p.ID == w.ID }) {
			key, r := s.hub.take(w, s.caller)
			s.parts = append(s.parts, &substream{Substream: w, key: key, resource: r})
			started = append(started, w.ID)
		}
	}
	slices.SortFunc(s.parts, func(a, b *substream) int { return strings.Compare(a.ID, b.ID) })
	return started, stopped
}

func same(a, b alto.Substream) bool {
	return a.ID == b.ID && a.ResourceID == b.ResourceID && a.Tag == b.Tag && a.Whole == b.Whole && a.Patches == b.Patches &&
		string(a.Input) == string(b.Input)
}

// Follow sends what the stream has, and then what changes of it, until the context ends, all of it is removed, send fails, or Postgres
// does. alive is called when nothing has come for a while.
func (s *Stream) Follow(ctx context.Context, quiet time.Duration, send func(sse.Event) error, alive func() error) error {
	if err := s.control(send, alto.UpdateControlEvent{ControlURI: Path + s.ID.String()}); err != nil {
		return err
	}
	err := feed.Watch(ctx, quiet, func() (sent bool, wait <-chan struct{}, err error) {
		now, r, wait, err := s.hub.present(s.ID)
		if err != nil {
			return false, nil, err
		}
		sent, err = s.turn(now, r, send)
		if err == nil && len(s.parts) == 0 {
			err = errRemoved
		}
		return sent, wait, err
	}, alive)
	if errors.Is(err, errRemoved) {
		return nil
	}
	return err
}

// errRemoved ends a stream that has nothing any more.
var errRemoved = errors.New("all of it was removed")

// turn sends what is new. Network maps go first, since costs are about the places of one.
func (s *Stream) turn(now snapshot, r row, send func(sse.Event) error) (sent bool, err error) {
	if r.Revision != s.read {
		s.read = r.Revision
		started, stopped := s.set(r.Substreams)
		if sent = len(started)+len(stopped) > 0; sent {
			if err := s.control(send, alto.UpdateControlEvent{Started: started, Stopped: stopped}); err != nil {
				return sent, err
			}
		}
	}
	inOrder := slices.Clone(s.parts)
	slices.SortStableFunc(inOrder, func(a, b *substream) int { return rank(a) - rank(b) })
	for _, p := range inOrder {
		version, text, hash, patch, err := p.resource.state(now)
		if err != nil { // it can be asked for no more, such as a calendar of what is no longer foreseen
			s.parts = slices.DeleteFunc(s.parts, func(o *substream) bool { return o == p })
			s.hub.release(p.key)
			sent = true
			if err := s.control(send, alto.UpdateControlEvent{Stopped: []string{p.ID}, Description: err.Error()}); err != nil {
				return sent, err
			}
			continue
		}
		former := p.version
		p.version = version
		if version == former || former == 0 && (hash == p.hash || p.Tag != "" && p.Tag == tagOf(p, now.view)) {
			p.hash = hash // the client has it
			continue
		}
		e := sse.Event{Name: p.resource.Media + "," + p.ID, Data: string(text)}
		if version == former+1 && patch != nil && !p.Whole {
			e.Name, e.Data = p.resource.patches+","+p.ID, string(patch)
		}
		p.hash = hash
		e.ID = s.last()
		sent = true
		if err := send(e); err != nil {
			return sent, err
		}
	}
	return sent, nil
}

// last is the id of an event: what the client has of each part then.
func (s *Stream) last() string {
	all := make([]string, len(s.parts))
	for i, p := range s.parts {
		all[i] = p.hash
	}
	return strings.Join(all, ".")
}

func rank(p *substream) int {
	if p.resource.Media == alto.NetworkMap {
		return 0
	}
	return 1
}

// tagOf is the version that the resource has in ALTO; only the whole network map has one.
func tagOf(p *substream, v *view.View) string {
	if p.ResourceID != exposure.Map {
		return ""
	}
	return v.Tag
}

func (s *Stream) control(send func(sse.Event) error, e alto.UpdateControlEvent) error {
	text, err := json.Marshal(e)
	if err != nil {
		return err
	}
	return send(sse.Event{Name: alto.UpdateControl, Data: string(text)})
}
