package inprocess

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/storetest"
)

func TestNobodyIsCalledInATransaction(t *testing.T) {
	t.Parallel()
	target := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(target.Close)
	call := func(ctx context.Context) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, target.URL, nil)
		require.NoError(t, err)
		resp, err := (&http.Client{Transport: outside{}}).Do(r)
		if err == nil {
			err = resp.Body.Close()
		}
		return err
	}
	require.NoError(t, call(t.Context()))
	err := storetest.New(t).Tx(t.Context(), func(ctx context.Context, _ *store.Tx) error { return call(ctx) })
	require.ErrorContains(t, err, "in a transaction")
}
