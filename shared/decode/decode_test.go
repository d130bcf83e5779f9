package decode_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/decode"
	"github.com/littoral-project/littoral/shared/problem"
)

// own returns the error of encoding/json.
type own struct{ limits map[string]float64 }

func (o *own) UnmarshalJSON(raw []byte) error {
	var wire struct {
		Limits map[string]float64 `json:"limits"`
	}
	err := json.Unmarshal(raw, &wire)
	o.limits = wire.Limits
	return err
}

// named finds the faults itself.
type named map[string]string

func (n *named) UnmarshalJSON(raw []byte) error {
	var given map[string]any
	if err := json.Unmarshal(raw, &given); err != nil {
		return err
	}
	var faults problem.Faults
	for key, value := range given {
		if _, ok := value.(string); !ok {
			faults.Add("named."+key, 0, "must be a text")
		}
	}
	return faults.Err("the names are not valid")
}

func TestJSON_namesEveryMisfit(t *testing.T) {
	t.Parallel()
	type inner struct {
		At time.Time `json:"at"`
	}
	type Embedded struct {
		Name string `json:"name"`
	}
	type whole struct {
		Embedded
		ID     uuid.UUID         `json:"id"`
		Count  int               `json:"count"`
		Size   uint64            `json:"size"`
		Share  float64           `json:"share"`
		On     bool              `json:"on"`
		Labels map[string]string `json:"labels"`
		List   []inner           `json:"list"`
		Maybe  *inner            `json:"maybe"`
		Own    own               `json:"own"`
		Named  named             `json:"named"`
		Hidden string            `json:"-"`
		Plain  string
	}
	for name, row := range map[string]struct {
		body string
		want map[string]string
	}{
		"what fits": {
			`{"name": "a", "count": 1, "list": [{}], "maybe": null, "Hidden": 1, "further": []}`, nil,
		},
		"values of single fields": {
			`{"name": 1, "count": "1", "share": "x", "on": 0}`,
			map[string]string{"name": "want a string", "count": "want a whole number", "share": "want a number", "on": "want true or false"},
		},
		"a fraction for a count": {`{"count": 1.5}`, map[string]string{"count": "want a whole number"}},
		"less than none":         {`{"size": -1}`, map[string]string{"size": "want a whole number"}},
		"a text that is no UUID": {`{"id": "x"}`, map[string]string{"id": "is not a UUID"}},
		"a number for a UUID":    {`{"id": 1}`, map[string]string{"id": "want a string"}},
		"values of a map": {
			`{"labels": {"a": 1, "b": "2", "c": []}}`,
			map[string]string{"labels.a": "want a string", "labels.c": "want a string"},
		},
		"values in a list": {
			`{"list": [{"at": "noon"}, {}, 5]}`, map[string]string{"list[0].at": `is not a time such as "2026-`, "list[2]": "want an object"},
		},
		"something for a list":       {`{"list": {}}`, map[string]string{"list": "want a list"}},
		"something behind a pointer": {`{"maybe": {"at": 5}}`, map[string]string{"maybe.at": "is not a time"}},
		"names in another case": {
			`{"COUNT": "x", "plain": 1}`, map[string]string{"COUNT": "want a whole number", "plain": "want a string"},
		},
		"a number out of reach": {`{"share": 1e400}`, map[string]string{"share": "1e400 is too large"}},
		"what a decoder of its own finds": {
			`{"own": {"limits": {"warning": "a lot"}}, "named": {"a": [], "b": 1, "c": "x"}}`,
			map[string]string{"own.limits": "want a number", "named.a": "must be a text", "named.b": "must be a text"},
		},
		"the whole": {`[]`, map[string]string{"": "want an object"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := decode.JSON([]byte(row.body), &whole{})
			if row.want == nil {
				require.NoError(t, err)
				return
			}
			var e *problem.Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, problem.Invalid, e.Kind)
			require.Len(t, e.Fields, len(row.want), "%v", e.Fields)
			for _, f := range e.Fields {
				require.Contains(t, row.want, f.Path)
				require.Contains(t, f.Detail, row.want[f.Path], f.Path)
			}
		})
	}
	require.Equal(t, problem.Malformed, problem.KindOf(decode.JSON([]byte(`{"a"`), &whole{})))
}

// TestJSON_ofMoreThanFits: a value of two characters may take a hundred bytes or more in memory, and a function
// may have only 64 MiB for all its calls.
func TestJSON_ofMoreThanFits(t *testing.T) {
	t.Parallel()
	type alert struct {
		Labels, Annotations map[string]string
		From, To            time.Time
		Name, URL, Status   string
	}
	var into struct {
		Alerts []alert
		Labels map[string]string
		Text   string
		Rest   any
	}
	list := func(piece string) string { return `[` + strings.Repeat(piece+",", 200_000) + piece + `]` }
	for name, body := range map[string]string{
		"objects":           `{"alerts": ` + list(`{}`) + `}`,
		"nulls":             `{"alerts": ` + list(` null`) + `}`,
		"lists in lists":    `{"rest": ` + list(`[[]]`) + `}`,
		"after a text":      `{"text": "\\", "rest": ` + list(`""`) + `}`,
		"a list of its own": list(`{}`),
	} {
		t.Run(name, func(t *testing.T) {
			err := decode.JSON([]byte(body), &into)
			require.Equal(t, problem.TooLarge, problem.KindOf(err), "%v", err)
		})
	}
	for name, body := range map[string]string{
		"a text that looks like many": `{"text": "` + strings.Repeat(`{},[],\",`, 100_000) + `"}`,
		"many":                        `{"rest": [` + strings.Repeat(`1,`, 50_000) + `1]}`,
		"more in what is larger":      `{"rest": [` + strings.Repeat(`"a text that is longer",`, 150_000) + `1]}`,
	} {
		t.Run(name, func(t *testing.T) { require.NoError(t, decode.JSON([]byte(body), &into)) })
	}
}
