package home_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/functions/aggregator/home"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
)

func TestHandle_answersAnyone(t *testing.T) {
	t.Parallel()
	h, err := function.NewEntry("aggregator-home", home.Spec, home.New).Handler(function.Platform{
		Auth: &auth.Verifier{}, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}.Env("aggregator-home"))
	require.NoError(t, err)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/aggregator/healthz", nil))
	require.Equal(t, http.StatusOK, w.Code)
	require.JSONEq(t, `{"status":"ok"}`, w.Body.String())

	w = httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/aggregator/healthz", nil))
	require.Equal(t, http.StatusMethodNotAllowed, w.Code)
	require.Equal(t, "GET, HEAD", w.Header().Get("Allow"))
}
