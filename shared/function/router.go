package function

import (
	"net/http"

	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/trace"
)

// Router is a ServeMux whose own refusals (no such path, wrong method) are problem documents too.
type Router struct{ mux http.ServeMux }

// NewRouter returns a router without routes.
func NewRouter() *Router { return &Router{} }

// Handle serves pattern, "METHOD /path/{param}", with h. It panics when the pattern contradicts an earlier one.
func (rt *Router) Handle(pattern string, h http.Handler) { rt.mux.Handle(pattern, h) }

func (rt *Router) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h, pattern := rt.mux.Handler(r)
	if pattern != "" {
		rt.mux.ServeHTTP(w, r) // sets the path values, which the handler found above does not
		return
	}
	refusal := &refusal{header: http.Header{}}
	h.ServeHTTP(refusal, r)
	ctx := trace.Start(r.Context(), r.Header.Get("Traceparent"))
	err := problem.New(problem.NotFound, "there is nothing at %s", r.URL.Path)
	if refusal.code == http.StatusMethodNotAllowed {
		w.Header().Set("Allow", refusal.header.Get("Allow"))
		err = problem.New(problem.MethodNotAllowed, "%s takes %s", r.URL.Path, refusal.header.Get("Allow"))
	}
	problem.Write(w, err, trace.ID(ctx))
}

// refusal keeps what the mux would have answered.
type refusal struct {
	header http.Header
	code   int
}

func (f *refusal) Header() http.Header         { return f.header }
func (f *refusal) WriteHeader(code int)        { f.code = code }
func (f *refusal) Write(b []byte) (int, error) { return len(b), nil }
