// Package openapi answers the description of the whole API.
package openapi

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/littoral-project/littoral/shared/api"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
)

// Spec declares the function.
var Spec = function.Spec{
	// What the API takes and answers is no secret: the page is in the repository, too.
	Routes: []function.Route{
		{Pattern: "GET /openapi.yaml", Role: auth.Open},
		{Pattern: "GET /openapi.json", Role: auth.Open},
	},
	Storeless: true,
}

// Function is the operation.
type Function struct{}

// New returns the function.
func New(*function.Env) (*Function, error) { return &Function{}, nil }

// asJSON is made when somebody first asks for it, since that takes longer than the start of the process.
var asJSON = sync.OnceValues(func() ([]byte, error) {
	var page map[string]any
	if err := yaml.Unmarshal(api.OpenAPI, &page); err != nil {
		return nil, err
	}
	return json.Marshal(page)
})

// Handle answers the page in the form that the path names.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	page, kind := api.OpenAPI, "application/yaml"
	if r.URL.Path == "/openapi.json" {
		var err error
		if page, err = asJSON(); err != nil {
			return fmt.Errorf("write the page as JSON: %w", err)
		}
		kind = "application/json"
	}
	sum := sha256.Sum256(page)
	w.Header().Set("ETag", `"`+base64.RawURLEncoding.EncodeToString(sum[:12])+`"`)
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Cache-Control", "no-cache") // ask whether it is still this one
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(page))
	return nil
}
