// Package app serves the console: a web page that shows what runs where, and why.
//
// Its source is in ui, what is served in dist ("make console" builds one from the other).
package app

import (
	"embed"
	"io/fs"
	"net/http"

	"github.com/littoral-project/littoral/shared/assets"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
)

// root is where the pages are, as vite.config.ts has it.
const root = "/console/"

// Spec declares the function.
var Spec = function.Spec{
	// The files hold nothing of anybody: what they show, they ask for with the token of whoever is signed in.
	Routes:    []function.Route{{Pattern: "GET " + root, Role: auth.Open, Subtree: true}},
	Storeless: true,
}

//go:embed dist
var files embed.FS

// Function is the operation with its files.
type Function struct{ assets *assets.Assets }

// New reads the files.
func New(*function.Env) (*Function, error) {
	dist, err := fs.Sub(files, "dist")
	if err != nil {
		return nil, err
	}
	a, err := assets.New(root, dist)
	return &Function{a}, err
}

// Handle answers a file of the console.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error { return f.assets.Handle(w, r) }
