// Package prometheustest opens the engine of Prometheus for tests.
package prometheustest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/infra/runner/prometheus"
)

// New opens a storage that ends with the test.
func New(t testing.TB) *prometheus.Server { return With(t, prometheus.Options{}) }

// With is New with options; without Dir it has a folder of its own.
func With(t testing.TB, o prometheus.Options) *prometheus.Server {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	s, err := prometheus.Open(o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}
