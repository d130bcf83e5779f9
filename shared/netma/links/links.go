// Package links keeps what was measured between nodes: what probes, L2S-M or a generator say, by way of telemetry or of an
// object of Kubernetes.
package links

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/store"
)

// Fresh is for how long a measurement counts. Throughput is measured rarely, so it is not short.
const Fresh = 30 * time.Minute

// Figures are what was measured of a link; nil is not measured.
type Figures struct {
	RTT             *float64 `db:"rtt"             json:"rttMs,omitempty"`
	Jitter          *float64 `db:"jitter"          json:"jitterMs,omitempty"`
	Loss            *float64 `db:"loss"            json:"lossPercent,omitempty"`
	Throughput      *float64 `db:"throughput"      json:"throughputKbps,omitempty"` // of one TCP connection
	Bandwidth       *float64 `db:"bandwidth"       json:"bandwidthKbps,omitempty"`  // of the link
	Retransmissions *float64 `db:"retransmissions" json:"retransmissionsPercent,omitempty"`
	Energy          *float64 `db:"energy"          json:"energyWatts,omitempty"`
}

// Measurement is of one link, in one direction.
type Measurement struct {
	Source string `db:"source" json:"source"`
	Target string `db:"target" json:"target"`
	Figures
	MeasuredAt time.Time `db:"measured_at" json:"measuredAt"`
	Degraded   string    `db:"degraded"    json:"degraded,omitempty"` // why it does not keep its channels
}

const (
	columns = `select source, target, rtt, jitter, loss, throughput, bandwidth, retransmissions, energy, measured_at, degraded
from link_measurements`

	selectAll = columns + ` order by source, target`

	selectFresh = columns + ` where measured_at > now() - $1::interval order by source, target`

	// What a source does not measure each time stays as it was.
	upsert = `insert into link_measurements as m
(source, target, rtt, jitter, loss, throughput, bandwidth, retransmissions, energy, measured_at)
select * from unnest($1::text[], $2::text[], $3::float8[], $4::float8[], $5::float8[], $6::float8[], $7::float8[], $8::float8[],
$9::float8[], $10::timestamptz[])
on conflict (source, target) do update set
	rtt = coalesce(excluded.rtt, m.rtt), jitter = coalesce(excluded.jitter, m.jitter), loss = coalesce(excluded.loss, m.loss),
	throughput = coalesce(excluded.throughput, m.throughput), bandwidth = coalesce(excluded.bandwidth, m.bandwidth),
	retransmissions = coalesce(excluded.retransmissions, m.retransmissions), energy = coalesce(excluded.energy, m.energy),
	measured_at = greatest(excluded.measured_at, m.measured_at)`

	carries = `update link_measurements m set bandwidth = null, throughput = nullif(m.throughput, 0), loss = nullif(m.loss, 100)
from unnest($1::text[], $2::text[]) as u (source, target) where m.source = u.source and m.target = u.target and m.bandwidth = 0`

	forget = `delete from link_measurements where measured_at < now() - interval '7 days'`

	setDegraded = `update link_measurements set degraded = $3 where source = $1 and target = $2 and degraded <> $3`
)

// All lists every link that was measured, the old ones too.
func All(ctx context.Context, q store.Querier) ([]Measurement, error) {
	return store.Collect(ctx, q, "read measurements", pgx.RowToStructByName[Measurement], selectAll)
}

// Current lists the links whose measurements count.
func Current(ctx context.Context, q store.Querier) ([]Measurement, error) {
	return store.Collect(ctx, q, "read measurements", pgx.RowToStructByName[Measurement], selectFresh, Fresh)
}

// Save stores measurements, each link at most once among them, and forgets those that are a week old.
func Save(ctx context.Context, tx *store.Tx, all []Measurement) error {
	n := len(all)
	source, target, at := make([]string, n), make([]string, n), make([]time.Time, n)
	var figures [7][]*float64
	for k := range figures {
		figures[k] = make([]*float64, n)
	}
	for i := range all {
		m := &all[i]
		source[i], target[i], at[i] = m.Source, m.Target, m.MeasuredAt
		for k, v := range m.each() {
			figures[k][i] = v
		}
	}
	_, err := tx.Exec(ctx, upsert, source, target, figures[0], figures[1], figures[2], figures[3], figures[4], figures[5], figures[6], at)
	if err != nil {
		return fmt.Errorf("store measurements: %w", err)
	}
	if _, err := tx.Exec(ctx, forget); err != nil {
		return fmt.Errorf("forget measurements: %w", err)
	}
	return nil
}

// Carries forgets that links were down, as far as it is not said of them again: what is not measured anew would stay.
func Carries(ctx context.Context, tx *store.Tx, all []Measurement) error {
	var source, target []string
	for i := range all {
		if m := &all[i]; m.Bandwidth == nil {
			source, target = append(source, m.Source), append(target, m.Target)
		}
	}
	if _, err := tx.Exec(ctx, carries, source, target); err != nil {
		return fmt.Errorf("forget that links were down: %w", err)
	}
	return nil
}

// SetDegraded notes why a link does not keep its channels, or that it does; news is true if it was not known.
func SetDegraded(ctx context.Context, tx *store.Tx, source, target, why string) (news bool, err error) {
	tag, err := tx.Exec(ctx, setDegraded, source, target, why)
	if err != nil {
		return false, fmt.Errorf("note the state of a link: %w", err)
	}
	return tag.RowsAffected() > 0, nil
}

func (f *Figures) each() [7]*float64 {
	return [7]*float64{f.RTT, f.Jitter, f.Loss, f.Throughput, f.Bandwidth, f.Retransmissions, f.Energy}
}

// Known returns a figure that can be one: finite and not negative. Generators are known to write others.
func Known(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
		return nil
	}
	return &v
}
