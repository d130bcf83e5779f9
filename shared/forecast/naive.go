package forecast

import (
	"context"
	"encoding/json"
	"fmt"
)

// LastValue is the kind that repeats the last value. Whoever cannot beat it has learnt nothing.
type LastValue struct{}

// Name implements Kind.
func (LastValue) Name() string { return "last-value" }

// Train implements Kind; there is nothing to learn.
func (LastValue) Train(context.Context, Series, Options) (Model, error) { return lastValue{}, nil }

// Decode implements Kind.
func (LastValue) Decode([]byte) (Model, error) { return lastValue{}, nil }

type lastValue struct{}

func (lastValue) Needs() int { return 1 }

func (lastValue) Forecast(past []float64, horizon int) ([]float64, error) {
	return seasonal{Season: 1}.Forecast(past, horizon)
}

// Yesterday is the kind that repeats what was at the same time one day before.
type Yesterday struct{}

// Name implements Kind.
func (Yesterday) Name() string { return "yesterday" }

// Train implements Kind; all it learns is how many steps a day has.
func (Yesterday) Train(_ context.Context, s Series, _ Options) (Model, error) {
	day := s.Day()
	if day == 0 {
		return nil, fmt.Errorf("a day is no whole number of steps of %s", s.Step)
	}
	if len(s.Values) < day {
		return nil, short(len(s.Values), day)
	}
	return seasonal{Season: day}, nil
}

// Decode implements Kind.
func (Yesterday) Decode(data []byte) (Model, error) { return decoded[seasonal](data) }

// seasonal repeats the last season.
type seasonal struct {
	Season int `json:"season"`
}

func (m seasonal) Needs() int { return m.Season }

func (m seasonal) Forecast(past []float64, horizon int) ([]float64, error) {
	if err := checkHorizon(horizon); err != nil {
		return nil, err
	}
	season, err := recent(past, m.Season)
	if err != nil {
		return nil, err
	}
	next := make([]float64, horizon)
	for h := range next {
		next[h] = season[h%m.Season]
	}
	return next, nil
}

// decoded reads a model of type M.
func decoded[M Model](data []byte) (Model, error) {
	var m M
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, fmt.Errorf("read the model: %w", err)
	}
	return m, nil
}
