package function

import (
	"fmt"
	"strings"
	"time"

	"github.com/littoral-project/littoral/shared/auth"
)

// Spec declares a function. Its name is its folder, component first: functions/jobmanager/group-create is
// "jobmanager-group-create" as Service, image and log field.
type Spec struct {
	Routes      []Route       // none for a reaction
	Consumes    []string      // event types that a Trigger or PingSource may send here
	Emits       []string      // event types it may produce
	PrewakeFor  []string      // those of them that nearly every call ends in: their consumers are woken with it
	NoPrewake   bool          // nobody waits for what it does: only its event starts it, it is not woken ahead
	Class       Class         // what it may have: memory, time, size; the zero value = Small
	Timeout     time.Duration // of one call, only where that of the class is no good; 0 = that of the class, or of Stream
	Concurrency int64         // calls one instance takes at once; 0 = DefaultConcurrency; 1 = one call at a time, in one instance
	MaxBody     int64         // bytes of a request body; 0 = DefaultMaxBody; of a stream in either direction there is no limit
	Storeless   bool          // its operation never asks the store: none is dialled while the caller is identified
	Needs       []Need        // what it uses of the Secret, besides the store
	Kubernetes  bool          // it asks the Kubernetes API as its ServiceAccount: no other function is given a token
	Stream      Stream        // its answers go on for a while; the zero value = they do not
	Watches     []Watch       // kinds of Kubernetes objects whose changes are events for it
	GRPC        bool          // its routes are methods of a gRPC service, "POST /package.Service/Method", over HTTP/2
}

// Route is one path of the one base URL, or everything below a path.
type Route struct {
	Pattern string    // "METHOD /path/{param}", as net/http's ServeMux writes it
	Role    auth.Role // what a caller needs; auth.Open for none
	Aliases []string  // other spellings with the same meaning and parameters, each with its method
	Subtree bool      // every path below it too; its path then ends in "/"
}

// Patterns lists the pattern and its aliases.
func (r Route) Patterns() []string { return append([]string{r.Pattern}, r.Aliases...) }

// Patterns lists those of all routes.
func (s Spec) Patterns() []string {
	var all []string
	for _, r := range s.Routes {
		all = append(all, r.Patterns()...)
	}
	return all
}

// Stream declares answers that last: server-sent events, or a gRPC stream. What goes over one is sent at once.
type Stream struct {
	// For is the greatest duration of one. Then the function ends it, and a caller who wants more comes again, so that no
	// instance is held forever. Knative allows ten minutes with the start, unless the cluster is set otherwise.
	For time.Duration
	// AtOnce is how many may be open through one gateway, beside all other calls; 0 = DefaultStreams.
	AtOnce int
}

// Watch asks for an event for every change of the objects of a kind (events.ObjectAdded, ObjectUpdated, ObjectDeleted, with
// the whole object as data). They come unsigned from the platform: a function asks the API for what it is to believe.
type Watch struct {
	APIVersion string // "codeco.example/v1alpha1"
	Kind       string
	Plural     string            // of the kind, as paths have it, for the right to watch
	Labels     map[string]string // only objects with these; nil = all
	Namespaces string            // only those of the namespaces that have a label with this key; "" = our own namespace
}

// Defaults of a Spec.
const (
	DefaultTimeout     = 10 * time.Second
	DefaultConcurrency = 20
	DefaultMaxBody     = 1 << 20
	DefaultStreams     = 500
)

// WithDefaults returns s with every unset limit at its default.
func (s Spec) WithDefaults() Spec {
	s.Timeout = s.Limits().Timeout
	if s.Streams() && s.Stream.AtOnce == 0 {
		s.Stream.AtOnce = DefaultStreams
	}
	if s.Concurrency == 0 {
		s.Concurrency = DefaultConcurrency
	}
	if s.MaxBody == 0 {
		s.MaxBody = DefaultMaxBody
	}
	return s
}

// Streams reports whether its answers go on for a while.
func (s Spec) Streams() bool { return s.Stream.For > 0 }

// check refuses a class that does not exist, and routes that say no role, or whose pattern and Subtree differ.
func (s Spec) check() error {
	if _, there := classes[s.Class]; !there {
		return fmt.Errorf("there is no class %q", s.Class)
	}
	for _, r := range s.Routes {
		if r.Role == "" {
			return fmt.Errorf("%s says no role: auth.Open if nobody needs one", r.Pattern)
		}
		for _, pattern := range r.Patterns() {
			method, path, _ := strings.Cut(pattern, " ")
			if method == "" || !strings.HasPrefix(path, "/") || strings.Contains(path, "...") {
				return fmt.Errorf("%q is not METHOD /path", pattern)
			}
			if strings.HasSuffix(path, "/") != r.Subtree {
				return fmt.Errorf("%q: a path that ends in / is a Subtree, and no other is; {$} marks the end of one", pattern)
			}
			if s.GRPC && method != "POST" {
				return fmt.Errorf("%q: methods of gRPC are called with POST", pattern)
			}
		}
	}
	return nil
}
