package app_test

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/functions/console/app"
	"github.com/littoral-project/littoral/shared/assets"
)

func get(t *testing.T, path string) *http.Response {
	t.Helper()
	f, err := app.New(nil)
	require.NoError(t, err)
	w := httptest.NewRecorder()
	require.NoError(t, f.Handle(w, httptest.NewRequest(http.MethodGet, path, nil)))
	return w.Result()
}

// TestThePageLoadsOnlyWhatItsPolicyAllows: no inline script or style, and every file that it names is there.
func TestThePageLoadsOnlyWhatItsPolicyAllows(t *testing.T) {
	t.Parallel()
	page := get(t, "/console/")
	require.Equal(t, http.StatusOK, page.StatusCode)
	require.Equal(t, assets.Policy, page.Header.Get("Content-Security-Policy"))
	require.Equal(t, "no-cache", page.Header.Get("Cache-Control"))
	body := make([]byte, 1<<16)
	n, _ := page.Body.Read(body)
	html := string(body[:n])
	require.NotRegexp(t, `<style|style=|<script[^>]*>[^<]|\son[a-z]+=`, html)
	named := regexp.MustCompile(`(?:src|href)="([^"]+)"`).FindAllStringSubmatch(html, -1)
	require.GreaterOrEqual(t, len(named), 3, "the icon, the script and the styles")
	for _, m := range named {
		require.Equal(t, http.StatusOK, get(t, m[1]).StatusCode, m[1])
	}
}
