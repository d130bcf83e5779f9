// New-function creates the folder of a function for one HTTP operation, ready to be completed:
//
//	make new-function NAME=jobmanager/group-pause
package main

import (
	"fmt"
	"log"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

var form = regexp.MustCompile(`^[a-z][a-z0-9]*/[a-z][a-z0-9-]*$`)

const source = `// Package %[1]s says here in one sentence what it does.
package %[1]s

import (
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "GET /%[2]s/%[3]s", Role: auth.Viewer}},
}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New returns the function.
func New(env *function.Env) (*Function, error) { return &Function{db: env.DB}, nil }

// Handle answers.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	if err := f.db.Ping(r.Context()); err != nil {
		return err
	}
	return function.WriteJSON(w, http.StatusOK, map[string]string{"function": "%[2]s-%[3]s"})
}
`

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 || !form.MatchString(os.Args[1]) {
		log.Fatal("usage: make new-function NAME=component/operation (lower case, hyphens in the operation)")
	}
	component, operation, _ := strings.Cut(os.Args[1], "/")
	dir := filepath.Join("functions", component, operation)
	if _, err := os.Stat(dir); err == nil {
		log.Fatalf("%s is there already", dir)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		log.Fatal(err)
	}
	text := fmt.Sprintf(source, strings.ReplaceAll(operation, "-", ""), component, operation)
	file := filepath.Join(dir, "function.go")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil { //nolint:gosec // source is for everyone to read
		log.Fatal(err)
	}
	fmt.Printf("%s is made. Fill it in, then: make generate && make test\n", file)
}
