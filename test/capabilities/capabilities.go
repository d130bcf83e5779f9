// Package capabilities has a small function for each thing that a declaration can ask for beside a short call: static
// files, a stream, gRPC, and a watch of Kubernetes objects. Tests run them wherever functions run.
package capabilities

import (
	"context"
	"fmt"
	"net/http"
	"testing/fstest"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/littoral-project/littoral/shared/assets"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
)

// Entries are the functions, by name. Seen gets the subject of each event of the watch.
func Entries(seen func(subject string)) map[string]function.Entry {
	all := map[string]function.Entry{}
	for _, e := range []function.Entry{
		function.NewEntry("test-static", function.Spec{
			Routes:    []function.Route{{Pattern: "GET /static/", Role: auth.Open, Subtree: true}},
			Storeless: true,
		}, newStatic),
		function.NewEntry("test-stream", function.Spec{
			Routes: []function.Route{{Pattern: "GET /stream", Role: auth.Viewer}},
			Stream: function.Stream{For: time.Minute, AtOnce: 2},
		}, func(*function.Env) (stream, error) { return stream{}, nil }),
		function.NewEntry("test-grpc", function.Spec{
			Routes: []function.Route{
				{Pattern: "POST /test.Echo/Say", Role: auth.Viewer}, {Pattern: "POST /test.Echo/Count", Role: auth.Viewer},
			},
			GRPC: true, Stream: function.Stream{For: time.Minute},
		}, newEcho),
		function.NewEntry("test-watch", function.Spec{
			Consumes: []string{events.ObjectAdded, events.ObjectUpdated, events.ObjectDeleted},
			Watches:  []function.Watch{{APIVersion: "test.example/v1", Kind: "Thing", Plural: "things"}},
		}, func(*function.Env) (watch, error) { return seen, nil }),
	} {
		all[e.Name] = e
	}
	return all
}

func newStatic(*function.Env) (*assets.Assets, error) {
	return assets.New("/static/", fstest.MapFS{
		"index.html":          {Data: []byte("<!doctype html>")},
		"app-0123456789ab.js": {Data: []byte("run()")},
	})
}

// stream sends one line and then nothing until it is ended.
type stream struct{}

func (stream) Handle(w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Content-Type", "text/event-stream")
	if _, err := fmt.Fprint(w, "data: first\n\n"); err != nil {
		return err
	}
	if err := http.NewResponseController(w).Flush(); err != nil {
		return err
	}
	<-r.Context().Done()
	return r.Context().Err()
}

// echo is a gRPC service with a method that answers once, and one that sends a message and then waits.
type echo struct{ server *grpc.Server }

func newEcho(*function.Env) (*echo, error) {
	e := &echo{grpc.NewServer()}
	e.server.RegisterService(&grpc.ServiceDesc{
		ServiceName: "test.Echo", HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: "Say", Handler: func(
			_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor,
		) (any, error) {
			said := new(wrapperspb.StringValue)
			return said, decode(said)
		}}},
		Streams: []grpc.StreamDesc{{StreamName: "Count", ServerStreams: true, Handler: func(_ any, s grpc.ServerStream) error {
			if err := s.SendMsg(wrapperspb.String("one")); err != nil {
				return err
			}
			<-s.Context().Done()
			return s.Context().Err()
		}}},
	}, e)
	return e, nil
}

func (e *echo) Handle(w http.ResponseWriter, r *http.Request) error {
	e.server.ServeHTTP(w, r)
	return nil
}

type watch func(subject string)

func (w watch) Work(_ context.Context, e cloudevents.Event) error {
	w(e.Type() + " " + e.Subject())
	return nil
}
