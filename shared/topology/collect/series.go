package collect

import (
	"github.com/littoral-project/littoral/shared/label"
	"github.com/littoral-project/littoral/shared/telemetry"
)

// seriesOf hashes the labels that name a host: FNV-1a of the texts, each with an end. Zero stands for none.
func seriesOf(owner [5]string) int64 {
	h := uint64(offset)
	for _, text := range owner {
		for i := range len(text) {
			h = (h ^ uint64(text[i])) * prime
		}
		h *= prime // an end that no text has
	}
	return int64(h | 1) // any 64 bits
}

// seriesOfRow is seriesOf of an element that is read.
func seriesOfRow(r *telemetry.Row) int64 {
	h := uint64(offset)
	for _, label := range [...]string{label.Controller, label.Agent, label.Cluster, label.Host, label.HostName} {
		for _, c := range r.Label(label) {
			h = (h ^ uint64(c)) * prime
		}
		h *= prime
	}
	return int64(h | 1) // any 64 bits
}

// Of FNV-1a with 64 bits, http://www.isthe.com/chongo/tech/comp/fnv/.
const (
	offset = 14695981039346656037
	prime  = 1099511628211
)
