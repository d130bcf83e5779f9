package registry

import (
	"iter"
	"slices"
	"strings"
	"time"
)

// State is remembered for each policy in order to distinguish a new violation from a repeated, late or reordered
// notice. It is stored with the policy, in the same transaction as the effects.
//
// An episode is one violation: the policy, the fingerprint of the alert (which of the watched things it is about), and
// the instant at which it started firing. It is enough to count episodes, and to remember when each was last reported:
// repeats change nothing, and it does not matter in which order two Alertmanagers send, or in which order notices are
// judged.
//
// An end may turn out to be wrong. An Alertmanager that gets no notice of an alert for a while reports it as resolved,
// and later as firing again with the same start. The start itself may move when one of several Prometheus servers or an
// Alertmanager restarts. So an end holds for everything that started before it, until a clearly later notice says that
// the alert fires.
type State struct {
	Phase Phase `json:"phase"`
	// Since is when the policy was last activated. It identifies the activation: a notice that came in during another
	// one is old, whatever it says; one that came in during this one is not, however long ago its alert started.
	Since   time.Time `json:"since,omitzero"`
	Started time.Time `json:"started,omitzero"` // when its application was started, see Policy.Started
	Fired   bool      `json:"fired,omitempty"`  // a violation was announced; a one-off policy announces no other
	Tracks  []Track   `json:"tracks,omitempty"`
}

// Track is the memory about one fingerprint.
type Track struct {
	Fingerprint string    `json:"fingerprint"`
	Instance    string    `json:"instance,omitempty"`  // the instance it is about; empty if the alert does not say
	Component   string    `json:"component,omitempty"` // of the instance, likewise
	Episodes    []Episode `json:"episodes"`            // oldest first
	Horizon     time.Time `json:"horizon,omitzero"`    // episodes that started up to here were forgotten: notices about them are old
	Until       time.Time `json:"until,omitzero"`      // episodes that started up to here have ended,
	Ended       time.Time `json:"ended,omitzero"`      // according to a notice received then
}

// Episode is one violation of one alert.
type Episode struct {
	Start time.Time `json:"start"`
	Fired bool      `json:"fired,omitempty"` // counted as violated
	Heard time.Time `json:"heard,omitzero"`  // when a firing notice was last received
	Over  bool      `json:"over,omitempty"`  // resolved
}

// Notice is one alert in the message of a webhook.
type Notice struct {
	Fingerprint string
	Instance    string // the instance it is about, if it says so
	Component   string // likewise
	StartsAt    time.Time
	EndsAt      time.Time // of a resolved alert, if it says so
	Firing      bool      // else resolved
	ReceivedAt  time.Time
	Since       time.Time // State.Since when the notice came in
}

// Lag is how long after an end a firing notice may be an older one that the end has overtaken. A firing alert is
// reported again and again, so this hides none.
const Lag = time.Minute

// Verdict is the meaning of a notice.
type Verdict string

// The verdicts.
const (
	NoChange    Verdict = "none"     // known already, or the policy is not watched
	NewEpisode  Verdict = "violated" // to be acted on, exactly once
	Continued   Verdict = "goes on"  // its end was wrong
	AllResolved Verdict = "resolved" // no episode is open any more
)

// Outcome is the verdict on a notice.
type Outcome struct {
	Verdict Verdict
	Episode Episode // the episode that fires; one that is over already still counts once
	// Ended says that the episode of the notice is over; others may be open.
	Ended bool
}

// Limits on what is remembered. A fingerprint that fires anew every minute is covered for more than half an hour of late
// notices; a notice about an older episode counts as old.
const (
	maxEpisodes = 32
	maxTracks   = 1024
)

// Activate makes the policy enforced from that instant on. What was heard before is forgotten: an alert that still
// fires is a new violation of the policy as it is now, although Alertmanager may still report the instant it first
// fired at.
func (s State) Activate(at time.Time) State {
	return State{Phase: Enforced, Since: at.UTC().Round(0), Started: s.Started}
}

// Deactivate makes the policy inactive.
func (s State) Deactivate() State {
	s.Phase, s.Tracks = Inactive, closed(s.Tracks)
	return s
}

func closed(tracks []Track) []Track {
	out := make([]Track, len(tracks))
	for i, t := range tracks {
		out[i] = t
		out[i].Episodes = slices.Clone(t.Episodes)
		for j := range out[i].Episodes {
			out[i].Episodes[j].Over = true
		}
	}
	return out
}

// Judge returns the state after a notice and what the notice means. s is not changed. While the policy is inactive,
// notices mean nothing. oneoff lets the policy be violated once per activation.
func (s State) Judge(n Notice, oneoff bool) (State, Outcome) {
	if s.Phase == Inactive || !n.Since.Equal(s.Since) {
		return s, Outcome{Verdict: NoChange}
	}
	start := n.StartsAt.UTC().Round(0)
	i, tracks := track(s.Tracks, n.Fingerprint)
	t := &tracks[i]
	if n.Firing && !t.Horizon.IsZero() && !start.After(t.Horizon) {
		return s, Outcome{Verdict: NoChange}
	}
	wasOpen := t.open()
	if n.Instance != "" {
		t.Instance = n.Instance
	}
	if n.Component != "" {
		t.Component = n.Component
	}
	e, before := &Episode{}, Episode{}
	if n.Firing {
		e = t.episode(start)
		before = *e
		e.Fired, e.Heard = true, latest(e.Heard, n.ReceivedAt)
	} else {
		t.Until, t.Ended = latest(t.Until, start, n.EndsAt), latest(t.Ended, n.ReceivedAt)
	}
	t.closeEpisodes()
	after := *e
	t.forget()
	out := Outcome{Verdict: NoChange, Episode: after, Ended: wasOpen && !t.open()}
	s.Tracks = tracks
	violated := s.open()
	switch {
	case after.Fired && !before.Fired && !(oneoff && s.Fired):
		out.Verdict, s.Fired = NewEpisode, true
	case before.Fired && !wasOpen && t.open():
		out.Verdict = Continued
	case s.Phase == Violated && !violated:
		out.Verdict = AllResolved
	}
	s.Phase = Enforced
	if violated {
		s.Phase = Violated
	}
	return s, out
}

func latest(first time.Time, others ...time.Time) time.Time {
	for _, t := range others {
		if t.After(first) {
			first = t.UTC().Round(0)
		}
	}
	return first
}

// open reports whether any episode is open.
func (s State) open() bool { return slices.ContainsFunc(s.Tracks, Track.open) }

// Open yields the open episodes: fingerprint and start. For each fingerprint it yields only the last, since an alert
// cannot fire twice at a time: the end of an earlier one was lost, or is still to come.
func (s State) Open() iter.Seq2[string, time.Time] {
	return func(yield func(string, time.Time) bool) {
		for _, t := range s.Tracks {
			for _, e := range slices.Backward(t.Episodes) {
				if !e.open() {
					continue
				}
				if !yield(t.Fingerprint, e.Start) {
					return
				}
				break
			}
		}
	}
}

// Blames reports whether an open episode is about the component of the instance. An episode without a component counts
// for any that the subject of the policy means.
func (s State) Blames(instance, component string, subject Subject) bool {
	means := func(told, meant, name string) bool {
		return told == name || told == "" && (meant == "" || Matches(meant, name))
	}
	return slices.ContainsFunc(s.Tracks, func(t Track) bool {
		return t.open() && means(t.Instance, subject.AppInstance, instance) && means(t.Component, subject.AppComponent, component)
	})
}

// Instances returns the instances with an open episode; "" stands for an episode without one.
func (s State) Instances() []string {
	var found []string
	for _, t := range s.Tracks {
		if t.open() {
			found = append(found, t.Instance)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

func (t Track) open() bool { return slices.ContainsFunc(t.Episodes, Episode.open) }

// open reports whether the episode continues. If only its end was seen (older versions stored that), it never did.
func (e Episode) open() bool { return e.Fired && !e.Over }

// track returns a copy of the tracks that includes one for the fingerprint, and its index. Tracks are sorted by
// fingerprint.
func track(tracks []Track, fingerprint string) (int, []Track) {
	tracks = slices.Clone(tracks)
	i, found := slices.BinarySearchFunc(tracks, fingerprint, func(t Track, f string) int {
		return strings.Compare(t.Fingerprint, f)
	})
	if found {
		tracks[i].Episodes = slices.Clone(tracks[i].Episodes)
		return i, tracks
	}
	if len(tracks) >= maxTracks {
		oldest := stalest(tracks)
		tracks = slices.Delete(tracks, oldest, oldest+1)
		if oldest < i {
			i--
		}
	}
	return i, slices.Insert(tracks, i, Track{Fingerprint: fingerprint})
}

// stalest returns the track to forget first: one that is over before one that is open, then by the earliest start of
// the last episode.
func stalest(tracks []Track) int {
	best := 0
	for i := range tracks {
		a, b := &tracks[i], &tracks[best]
		if a.open() != b.open() {
			if b.open() {
				best = i
			}
			continue
		}
		if a.last().Before(b.last()) {
			best = i
		}
	}
	return best
}

// last is the start of the last episode.
func (t *Track) last() (start time.Time) {
	if len(t.Episodes) > 0 {
		start = t.Episodes[len(t.Episodes)-1].Start
	}
	return start
}

// episode returns the episode with that start, a new one if there is none.
func (t *Track) episode(start time.Time) *Episode {
	i, found := slices.BinarySearchFunc(t.Episodes, start, func(e Episode, start time.Time) int {
		return e.Start.Compare(start)
	})
	if !found {
		t.Episodes = slices.Insert(t.Episodes, i, Episode{Start: start})
	}
	return &t.Episodes[i]
}

// closeEpisodes decides for each episode whether it is over. Episodes stored before Heard existed keep what was decided.
func (t *Track) closeEpisodes() {
	for i := range t.Episodes {
		e := &t.Episodes[i]
		switch {
		case !t.Ended.IsZero() && !e.Start.After(t.Until):
			e.Over = !e.Heard.After(t.Ended.Add(Lag))
		case !e.Heard.IsZero():
			e.Over = false
		}
	}
}

func (t *Track) forget() {
	if extra := len(t.Episodes) - maxEpisodes; extra > 0 {
		t.Horizon = t.Episodes[extra-1].Start
		t.Episodes = slices.Delete(t.Episodes, 0, extra)
	}
}
