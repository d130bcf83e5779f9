package registry_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/policy/registry"
)

func firing(start int) registry.Notice {
	return registry.Notice{Fingerprint: "f", StartsAt: at(start), Firing: true, ReceivedAt: at(start), Since: at(0)}
}

func resolved(start int) registry.Notice {
	return registry.Notice{Fingerprint: "f", StartsAt: at(start), ReceivedAt: at(start), Since: at(0)}
}

// ended is resolved with the instant at which it ended.
func ended(start, end int) registry.Notice {
	n := resolved(start)
	n.EndsAt, n.ReceivedAt = at(end), at(end)
	return n
}

func received(then int, n registry.Notice) registry.Notice {
	n.ReceivedAt = at(then)
	return n
}

func of(fingerprint string, n registry.Notice) registry.Notice {
	n.Fingerprint = fingerprint
	return n
}

func TestJudge(t *testing.T) {
	t.Parallel()
	const none, violated, over, goesOn = registry.NoChange, registry.NewEpisode, registry.AllResolved, registry.Continued
	for name, test := range map[string]struct {
		notices  []registry.Notice
		verdicts []registry.Verdict
		phase    registry.Phase
		oneoff   bool
	}{
		"fires, and is resolved": {
			notices:  []registry.Notice{firing(1), resolved(1)},
			verdicts: []registry.Verdict{violated, over}, phase: registry.Enforced,
		},
		"repeats change nothing": {
			notices:  []registry.Notice{firing(1), firing(1), firing(1), resolved(1), resolved(1), firing(1)},
			verdicts: []registry.Verdict{violated, none, none, over, none, none}, phase: registry.Enforced,
		},
		"the end overtakes the beginning": {
			notices:  []registry.Notice{resolved(1), firing(1), firing(1)},
			verdicts: []registry.Verdict{none, violated, none}, phase: registry.Enforced,
		},
		"two episodes": {
			notices:  []registry.Notice{firing(1), resolved(1), firing(9), resolved(9)},
			verdicts: []registry.Verdict{violated, over, violated, over}, phase: registry.Enforced,
		},
		"the end of the first was lost": {
			notices:  []registry.Notice{firing(1), firing(9), resolved(9), firing(1)},
			verdicts: []registry.Verdict{violated, violated, over, none}, phase: registry.Enforced,
		},
		"the second episode arrives first": {
			notices:  []registry.Notice{firing(9), firing(1), resolved(1), resolved(9)},
			verdicts: []registry.Verdict{violated, violated, none, over}, phase: registry.Enforced,
		},
		"the end was none": {
			notices: []registry.Notice{
				firing(1), ended(1, 300), received(360, firing(1)), received(361, firing(1)), received(500, firing(1)), ended(1, 600),
			},
			verdicts: []registry.Verdict{violated, over, none, goesOn, none, over}, phase: registry.Enforced,
		},
		"the end was none, and is judged late": {
			notices:  []registry.Notice{firing(1), received(400, firing(1)), ended(1, 300)},
			verdicts: []registry.Verdict{violated, none, none}, phase: registry.Violated,
		},
		"the start moves later, and back": {
			notices:  []registry.Notice{firing(1), firing(16), ended(1, 50)},
			verdicts: []registry.Verdict{violated, violated, over}, phase: registry.Enforced,
		},
		"the start moves earlier": {
			notices:  []registry.Notice{firing(16), firing(1), ended(1, 50)},
			verdicts: []registry.Verdict{violated, violated, over}, phase: registry.Enforced,
		},
		"another start of what has ended is judged late": {
			notices:  []registry.Notice{firing(1), ended(1, 50), firing(16)},
			verdicts: []registry.Verdict{violated, over, violated}, phase: registry.Enforced,
		},
		"the end was none, and the start moved back": {
			notices:  []registry.Notice{firing(1), firing(16), ended(1, 300), received(400, firing(1))},
			verdicts: []registry.Verdict{violated, violated, over, goesOn}, phase: registry.Violated,
		},
		"the end of the first is heard after the beginning of the second": {
			notices:  []registry.Notice{firing(1), firing(30), ended(1, 20), ended(30, 40)},
			verdicts: []registry.Verdict{violated, violated, none, over}, phase: registry.Enforced,
		},
		"violated for as long as anything violates it": {
			notices:  []registry.Notice{of("a", firing(1)), of("b", firing(2)), of("a", resolved(1)), of("b", resolved(2))},
			verdicts: []registry.Verdict{violated, violated, none, over}, phase: registry.Enforced,
		},
		"still firing": {
			notices:  []registry.Notice{of("a", firing(1)), of("b", resolved(1))},
			verdicts: []registry.Verdict{violated, none}, phase: registry.Violated,
		},
		"one-off": {
			notices:  []registry.Notice{firing(1), resolved(1), firing(9), resolved(9)},
			verdicts: []registry.Verdict{violated, over, none, over}, phase: registry.Enforced, oneoff: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := registry.State{}.Activate(at(0))
			for i, n := range test.notices {
				var out registry.Outcome
				s, out = s.Judge(n, test.oneoff)
				require.Equal(t, test.verdicts[i], out.Verdict, "notice %d", i)
			}
			require.Equal(t, test.phase, s.Phase)
		})
	}
}

func TestJudge_saysWhenAViolationIsPast(t *testing.T) {
	t.Parallel()
	s := registry.State{}.Activate(at(0))
	_, out := s.Judge(firing(1), false)
	require.False(t, out.Episode.Over)
	s, _ = s.Judge(resolved(1), false)
	_, out = s.Judge(firing(1), false)
	require.True(t, out.Episode.Over)
}

// TestJudge_inAnyOrder: the result is that of the last notice.
func TestJudge_inAnyOrder(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 6))
	heard := []registry.Notice{
		firing(1), firing(16), ended(1, 300), received(310, firing(16)), received(400, firing(1)), received(401, firing(1)),
	}
	for range 500 {
		r.Shuffle(len(heard), func(i, j int) { heard[i], heard[j] = heard[j], heard[i] })
		s := registry.State{}.Activate(at(0))
		for _, n := range heard {
			s, _ = s.Judge(n, false)
		}
		require.Equal(t, registry.Violated, s.Phase)
		require.Equal(t, map[string]time.Time{"f": at(1).UTC()}, maps.Collect(s.Open()))
		s, out := s.Judge(ended(1, 500), false)
		require.Equal(t, registry.AllResolved, out.Verdict)
		require.Empty(t, maps.Collect(s.Open()))
	}
}

// TestJudge_afterAnOlderVersion: it stored ended episodes, but not when their notices came in.
func TestJudge_afterAnOlderVersion(t *testing.T) {
	t.Parallel()
	s := registry.State{Phase: registry.Violated, Since: at(0), Tracks: []registry.Track{{
		Fingerprint: "f", Episodes: []registry.Episode{{Start: at(1), Fired: true, Over: true}, {Start: at(9), Fired: true}},
	}}}
	s, out := s.Judge(ended(9, 20), false)
	require.Equal(t, registry.AllResolved, out.Verdict)
	s, out = s.Judge(firing(30), false)
	require.Equal(t, registry.NewEpisode, out.Verdict)
	s, out = s.Judge(ended(30, 40), false)
	require.Equal(t, registry.AllResolved, out.Verdict)
	_, out = s.Judge(received(200, firing(30)), false)
	require.Equal(t, registry.Continued, out.Verdict)
}

// TestOpen_namesOneEpisodeOfEachAlert: after a lost end an earlier episode is still open, but is not acted upon any
// more.
func TestOpen_namesOneEpisodeOfEachAlert(t *testing.T) {
	t.Parallel()
	s := registry.State{}.Activate(at(0))
	for _, n := range []registry.Notice{firing(1), firing(9), of("g", firing(1))} {
		s, _ = s.Judge(n, false)
	}
	require.Equal(t, map[string]time.Time{"f": at(9).UTC(), "g": at(1).UTC()}, maps.Collect(s.Open()))
}

func TestJudge_inactive(t *testing.T) {
	t.Parallel()
	s, out := registry.State{}.Activate(at(0)).Judge(firing(1), false)
	require.Equal(t, registry.NewEpisode, out.Verdict)
	s = s.Deactivate()
	require.Equal(t, registry.Inactive, s.Phase)
	s, out = s.Judge(firing(5), false)
	require.Equal(t, registry.NoChange, out.Verdict, "nobody watches")
	require.Equal(t, registry.Inactive, s.Phase)
}

// TestJudge_activatedAgain: an alert that keeps firing with its old start violates the policy again. Notices from
// before the activation do not, however late they are judged.
func TestJudge_activatedAgain(t *testing.T) {
	t.Parallel()
	s, _ := registry.State{}.Activate(at(0)).Judge(firing(1), false)
	s = s.Deactivate().Activate(at(20))
	require.Equal(t, registry.Enforced, s.Phase, "activation always enforces")
	for _, late := range []registry.Notice{firing(1), resolved(1), firing(5), firing(30)} {
		var out registry.Outcome
		s, out = s.Judge(late, false)
		require.Equal(t, registry.NoChange, out.Verdict, "it came in before")
		require.Equal(t, registry.Enforced, s.Phase)
	}
	still := firing(1)
	still.Since = at(20)
	require.Empty(t, maps.Collect(s.Open()))
	s, out := s.Judge(still, false)
	require.Equal(t, registry.NewEpisode, out.Verdict)
	require.Equal(t, registry.Violated, s.Phase)
	require.Equal(t, map[string]time.Time{"f": at(1).UTC()}, maps.Collect(s.Open()))
	s, out = s.Judge(still, false)
	require.Equal(t, registry.NoChange, out.Verdict, "once")
	still.Firing = false
	s, out = s.Judge(still, false)
	require.Equal(t, registry.AllResolved, out.Verdict)
	require.Empty(t, maps.Collect(s.Open()))
}

// TestJudge_oncePerEpisode: two Alertmanagers send the notices of some episodes two hundred times in any order.
func TestJudge_oncePerEpisode(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	for range 500 {
		fingerprints, episodes := 1+r.IntN(3), 1+r.IntN(5)
		var all []registry.Notice
		for len(all) < 200 {
			for f := range fingerprints {
				for e := range episodes {
					n := of(fmt.Sprint("f", f), firing(100*e))
					all = append(all, n, n)
					n.Firing = false
					all = append(all, n)
				}
			}
		}
		r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		s, violations := registry.State{}.Activate(at(0)), map[string]int{}
		for _, n := range all {
			before := s
			var out registry.Outcome
			s, out = s.Judge(n, false)
			if out.Verdict == registry.NewEpisode {
				violations[n.Fingerprint+out.Episode.Start.String()]++
			}
			again, repeated := s.Judge(n, false)
			require.Equal(t, registry.NoChange, repeated.Verdict)
			require.Equal(t, s, again)
			require.NotEqual(t, registry.Unknown, before.Phase)
		}
		require.Len(t, violations, fingerprints*episodes)
		for key, count := range violations {
			require.Equal(t, 1, count, key)
		}
		require.Equal(t, registry.Enforced, s.Phase, "every episode was resolved")
	}
}

func TestJudge_remembersWithinBounds(t *testing.T) {
	t.Parallel()
	s := registry.State{}.Activate(at(0))
	count := 0
	for i := range 5000 {
		for range 2 {
			var out registry.Outcome
			s, out = s.Judge(of(fmt.Sprint(i%1500), firing(i)), false)
			if out.Verdict == registry.NewEpisode {
				count++
			}
		}
	}
	require.Equal(t, 5000, count)
	require.Len(t, s.Tracks, 1024)
	s = registry.State{}.Activate(at(0))
	for i := range 100 {
		s, _ = s.Judge(firing(i), false)
	}
	require.Len(t, s.Tracks[0].Episodes, 32)
	_, out := s.Judge(firing(3), false)
	require.Equal(t, registry.NoChange, out.Verdict, "forgotten episodes are old")
}

func TestJudge_doesNotChangeTheStateItWasGiven(t *testing.T) {
	t.Parallel()
	s, _ := registry.State{}.Activate(at(0)).Judge(firing(1), false)
	before := fmt.Sprintf("%+v", s)
	for _, n := range []registry.Notice{resolved(1), firing(5), of("a", firing(1))} {
		s.Judge(n, false)
		require.Equal(t, before, fmt.Sprintf("%+v", s))
	}
	s.Deactivate()
	require.Equal(t, before, fmt.Sprintf("%+v", s))
}

func BenchmarkJudge(b *testing.B) {
	s := registry.State{}.Activate(at(0))
	for i := 0; b.Loop(); i++ {
		s, _ = s.Judge(registry.Notice{
			Fingerprint: "f", StartsAt: time.Unix(int64(i/4), 0), Firing: i%4 != 3, ReceivedAt: time.Unix(int64(i), 0), Since: at(0),
		}, false)
	}
}
