// Package updatestream tells what changes of ALTO's resources, as it changes (RFC 8895).
package updatestream

import (
	"net/http"
	"time"

	"github.com/littoral-project/littoral/shared/alto"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/netma/exposure"
	"github.com/littoral-project/littoral/shared/netma/serve"
	"github.com/littoral-project/littoral/shared/netma/updates"
	"github.com/littoral-project/littoral/shared/sse"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes:      []function.Route{{Pattern: "POST /alto/updates", Role: auth.Viewer}},
	Stream:      function.Stream{For: 5 * time.Minute},
	Concurrency: 100, // maps are kept once, whoever follows them
	Class:       function.Large,
}

// Function is the operation with the streams of the instance.
type Function struct{ hub *updates.Hub }

// New returns the function.
func New(env *function.Env) (*Function, error) { return &Function{updates.NewHub(env.DB)}, nil }

// Handle answers server-sent events. The first names the URI by which the stream is controlled, the next are the resources, and then
// patches of them. The id of an event says what the caller has: with it as Last-Event-ID only what has changed since is sent.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	r.Body = http.MaxBytesReader(w, r.Body, function.DefaultMaxBody) // of others that stream it may have no end
	asked, ok, err := serve.Question(w, r, alto.UpdateParams, alto.EventStream, updates.ParseOpening)
	if err != nil || !ok {
		return err
	}
	s, err := f.hub.Open(r.Context(), updates.Opening{
		Owner: auth.From(r.Context()).Subject, Caller: exposure.Caller(r), Substreams: asked.Add,
		Until: time.Now().Add(Spec.Stream.For), Last: r.Header.Get("Last-Event-ID"),
	})
	if err != nil {
		return store.Classify(err)
	}
	defer s.Close()
	out, err := sse.Start(w, sse.Retry)
	if err != nil {
		return nil // the caller has gone
	}
	return sse.Ended(r.Context(), s.Follow(r.Context(), sse.Quiet, out.Send, out.Alive))
}
