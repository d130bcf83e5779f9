package assets_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/assets"
	"github.com/littoral-project/littoral/shared/problem"
)

func files() fstest.MapFS {
	return fstest.MapFS{
		"index.html":              {Data: []byte("<!doctype html>")},
		"assets/app-5f3a9c21.js":  {Data: []byte("run()")},
		"assets/app.BxQ7_k2Z.css": {Data: []byte("a{}")},
		"assets/document.svg":     {Data: []byte("<svg/>")},
		"some-document.js":        {Data: []byte("word()")},
	}
}

func TestFilesAreServedWithTheirTypeAndHowLongTheyMayBeKept(t *testing.T) {
	t.Parallel()
	a, err := assets.New("/console/", files())
	require.NoError(t, err)
	const forever, again = "public, max-age=31536000, immutable", "no-cache"
	for path, want := range map[string][3]string{
		"/console/":                        {"<!doctype html>", "text/html; charset=utf-8", again},
		"/console/apps/shop":               {"<!doctype html>", "text/html; charset=utf-8", again}, // of the application's router
		"/console/assets/app-5f3a9c21.js":  {"run()", "text/javascript; charset=utf-8", forever},
		"/console/assets/app.BxQ7_k2Z.css": {"a{}", "text/css; charset=utf-8", forever},
		"/console/assets/document.svg":     {"<svg/>", "image/svg+xml", again},
		"/console/some-document.js":        {"word()", "text/javascript; charset=utf-8", again},
	} {
		w := httptest.NewRecorder()
		require.NoError(t, a.Handle(w, httptest.NewRequest(http.MethodGet, path, nil)), path)
		h := w.Header()
		require.Equal(t, want, [3]string{w.Body.String(), h.Get("Content-Type"), h.Get("Cache-Control")}, path)
		require.Equal(t, assets.Policy, h.Get("Content-Security-Policy"), path)
		require.Equal(t, "nosniff", h.Get("X-Content-Type-Options"), path)

		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.Header.Set("If-None-Match", `"other", W/`+h.Get("ETag"))
		w = httptest.NewRecorder()
		require.NoError(t, a.Handle(w, r), path)
		require.Equal(t, http.StatusNotModified, w.Code, path)
		require.Empty(t, w.Body.String(), path)
	}
}

func TestWhatIsNotThereIsNotThePage(t *testing.T) {
	t.Parallel()
	a, err := assets.New("/console/", files())
	require.NoError(t, err)
	for _, path := range []string{"/console/old-00000000.js", "/console/../secret.txt", "/console/assets/none.png"} {
		w := httptest.NewRecorder()
		err := a.Handle(w, httptest.NewRequest(http.MethodGet, path, nil))
		require.Equal(t, problem.NotFound, problem.KindOf(err), path)
		require.Empty(t, w.Header().Get("Cache-Control"), path)
	}
	_, err = assets.New("/console/", fstest.MapFS{"app.js": {}})
	require.ErrorContains(t, err, "index.html")
}
