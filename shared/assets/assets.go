// Package assets serves the files of a browser application from a subtree of the base URL.
//
// A build tool puts a hash of their content into the names of most files (app-5f3a9c21.js). These may be kept forever,
// since changed content has another name. All others, the page first, are asked for again each time, which costs an
// answer without a body while they are unchanged.
package assets

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"regexp"
	"strings"

	"github.com/littoral-project/littoral/shared/problem"
)

// Page is the file for the root of the subtree, and for the paths that the application's own router knows.
const Page = "index.html"

// Policy is the Content-Security-Policy of the answers: nothing from elsewhere, no inline script or style, no frame.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; " +
	"connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// hashed is a name with a hash of the content before its last extension, as esbuild, Vite and webpack write it.
var hashed = regexp.MustCompile(`[-.]([0-9a-f]{8,}|[0-9A-Za-z_-]{8})\.[0-9a-z]+(\.map)?$`)

// Assets are the files of an application, ready to be served.
type Assets struct {
	root  string // of the subtree, "/console/"
	files map[string]file
}

type file struct {
	body      []byte
	kind, tag string
	immutable bool
}

// New reads all files. root is the path of the subtree, with a slash at both ends; the files must include Page.
func New(root string, from fs.FS) (*Assets, error) {
	a := &Assets{root: root, files: map[string]file{}}
	err := fs.WalkDir(from, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := fs.ReadFile(from, name)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(body)
		a.files[name] = file{
			body: body, kind: typeOf(name), tag: `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`,
			immutable: byContent(name),
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if _, found := a.files[Page]; !found {
		return nil, fmt.Errorf("the files for %s have no %s", root, Page)
	}
	return a, nil
}

// byContent reports whether the name of a file changes with its content. A hash has a digit; a word of eight letters is none.
func byContent(name string) bool {
	found := hashed.FindStringSubmatch(path.Base(name))
	return found != nil && strings.ContainsAny(found[1], "0123456789")
}

// typeOf does not ask the machine's own tables for what a browser needs; they differ, or are missing.
func typeOf(name string) string {
	switch ext := path.Ext(name); ext {
	case ".js", ".mjs":
		return "text/javascript; charset=utf-8"
	case ".map":
		return "application/json"
	case ".woff2":
		return "font/woff2"
	case ".ico":
		return "image/x-icon"
	case ".webmanifest":
		return "application/manifest+json"
	default:
		if kind := mime.TypeByExtension(ext); kind != "" {
			return kind
		}
		return "application/octet-stream"
	}
}

// Handle answers a GET below the root. A path that looks like no file (it has no extension) is one of the application's
// router and gets the page. The error is NotFound.
func (a *Assets) Handle(w http.ResponseWriter, r *http.Request) error {
	name := strings.TrimPrefix(r.URL.Path, a.root)
	found, ok := a.files[name]
	if !ok && path.Ext(name) == "" {
		found, ok = a.files[Page]
	}
	h := w.Header()
	h.Set("Content-Security-Policy", Policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	if !ok {
		return problem.New(problem.NotFound, "there is nothing at %s", problem.Brief(r.URL.Path, 200))
	}
	h.Set("ETag", found.tag)
	h.Set("Cache-Control", "no-cache")
	if found.immutable {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	if unchanged(r, found.tag) {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	h.Set("Content-Type", found.kind)
	h.Set("Content-Length", fmt.Sprint(len(found.body)))
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return nil
	}
	_, err := w.Write(found.body)
	return err
}

// unchanged compares weakly, as If-None-Match is to be compared (RFC 9110).
func unchanged(r *http.Request, tag string) bool {
	for _, one := range strings.Split(strings.Join(r.Header.Values("If-None-Match"), ","), ",") {
		if one = strings.TrimSpace(one); one == "*" || strings.TrimPrefix(one, "W/") == tag {
			return true
		}
	}
	return false
}
