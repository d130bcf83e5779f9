package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"strconv"
	"strings"
	"time"

	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/trace"
	"github.com/littoral-project/littoral/shared/wake"
)

// route is a pattern of net/http's ServeMux, the Service that handles matching requests, and the functions to wake for
// them.
type route struct {
	service, pattern string
	wakes            string // "function,function"

	stream time.Duration // the greatest duration of an answer that goes on; 0 = it does not
	atOnce int           // how many of these may be open
	grpc   bool          // calls arrive and go on in HTTP/2
}

// readTables reads every *.txt. A line is "service pattern", for example "jobmanager-job-get GET
// /jobmanager/jobs/{job_uuid}", or "issuer /oidc/" for everything below that path. # begins a comment. " > " is
// followed by the functions that such a call will need. Before it, stream=9m/500 says that an answer may go on for nine
// minutes and that five hundred may do so at once, and grpc that the calls are those of gRPC.
func readTables(dir fs.FS) ([]route, error) {
	names, err := fs.Glob(dir, "*.txt")
	if err != nil {
		return nil, err
	}
	var routes []route
	for _, name := range names {
		text, err := fs.ReadFile(dir, name)
		if err != nil {
			return nil, err
		}
		lines := bufio.NewScanner(bytes.NewReader(text))
		for n := 1; lines.Scan(); n++ {
			line, _, _ := strings.Cut(lines.Text(), "#")
			line, wakes, _ := strings.Cut(line, " > ")
			words := strings.Fields(line)
			if len(words) == 0 {
				continue
			}
			r, err := parse(words)
			if err != nil {
				return nil, fmt.Errorf("%s:%d: %w", name, n, err)
			}
			r.wakes = strings.TrimSpace(wakes)
			routes = append(routes, r)
		}
		if err := lines.Err(); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	if len(routes) == 0 {
		return nil, errors.New("there are no routes (*.txt)")
	}
	return routes, nil
}

func parse(words []string) (route, error) {
	r := route{service: words[0]}
	rest := words[1:]
	if len(rest) > 0 && !strings.HasPrefix(rest[0], "/") {
		r.pattern, rest = rest[0]+" ", rest[1:] // the method
	}
	if len(rest) == 0 {
		return r, fmt.Errorf("%q is not a service and a pattern", strings.Join(words, " "))
	}
	r.pattern += rest[0]
	for _, option := range rest[1:] {
		key, value, _ := strings.Cut(option, "=")
		lasts, most, _ := strings.Cut(value, "/")
		var err error
		switch key {
		case "grpc":
			r.grpc = true
		case "stream":
			if r.stream, err = time.ParseDuration(lasts); err == nil {
				r.atOnce, err = strconv.Atoi(most)
			}
		default:
			err = errors.New("nobody knows it")
		}
		if err != nil {
			return r, fmt.Errorf("%q: %w", option, err)
		}
	}
	return r, nil
}

// chains lists, for each service, the functions that its calls will need, in the format that package wake reads.
func chains(routes []route) string {
	var parts []string
	for _, r := range routes {
		if r.wakes != "" {
			parts = append(parts, r.service+"="+r.wakes)
		}
	}
	return strings.Join(parts, ";")
}

// options of the handler.
type options struct {
	host     func(service string) string       // the address of a service
	way      func(grpc bool) http.RoundTripper // to it
	waker    *wake.Waker                       // nil = nobody is woken ahead
	most     int                               // calls at once, without streams, which have limits of their own
	stopping context.Context                   // of the process; streams end with it
}

// newHandler serves the routes, and its own GET /healthz.
func newHandler(routes []route, o options) (_ http.Handler, err error) {
	defer func() {
		if p := recover(); p != nil { // ServeMux panics on an invalid pattern, or on one that conflicts with another
			err = fmt.Errorf("routes: %v", p)
		}
	}()
	router := function.NewRouter()
	calls, streams := make(slots, o.most), map[string]slots{}
	for _, r := range routes {
		h, room := pass(o.host(r.service), o.way(r.grpc), r.grpc), calls
		if r.stream > 0 {
			if streams[r.service] == nil {
				streams[r.service] = make(slots, r.atOnce)
			}
			h, room = lasting(o.stopping, r.stream, h), streams[r.service]
		}
		router.Handle(r.pattern, limit(room, r.grpc, o.waker.Handler(h, r.service)))
	}
	router.Handle("GET /healthz", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("ok\n"))
	}))
	return router, nil
}

// pass forwards requests to the service at host; Knative routes by that Host header. It adds the caller's trace, or
// starts one.
func pass(host string, t http.RoundTripper, grpc bool) http.Handler {
	return &httputil.ReverseProxy{
		Transport: t,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = "http", host, host
			r.Out.URL.RawQuery = r.In.URL.RawQuery // ReverseProxy drops what it cannot parse, which changes the request
			r.SetXForwarded()
			r.Out.Header.Del("Upgrade") // an upgraded connection would bypass the table of routes
			r.Out.Header.Del("Connection")
			if r.Out.Header.Get("Traceparent") == "" {
				r.Out.Header.Set("Traceparent", trace.Parent(trace.Start(r.In.Context(), "")))
			}
		},
		ModifyResponse: refuseFailures,
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if r.Context().Err() != nil {
				return // the caller has hung up
			}
			slog.WarnContext(r.Context(), "call failed", "service", host, "path", r.URL.Path, "error", err)
			refuse(w, problem.Wrap(problem.Unavailable, err, "the function cannot be reached; try again"), grpc)
		},
	}
}

// refuseFailures turns a response that a proxy in between gave for a function (one that is starting, stopping or
// unreachable) into an error. A function's own errors are problem documents, and are passed on.
func refuseFailures(r *http.Response) error {
	switch r.StatusCode {
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
	default:
		return nil
	}
	if r.Header.Get("Content-Type") == problem.ContentType {
		return nil
	}
	return errors.New("the way to the function answered " + r.Status)
}

// slots are as many as there may be calls at once.
type slots chan struct{}

// limit refuses calls for which no slot is left: running out of memory would end the calls that are under way too.
func limit(room slots, grpc bool, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case room <- struct{}{}:
			defer func() { <-room }()
			next.ServeHTTP(w, r)
		default:
			refuse(w, problem.New(problem.Unavailable, "%d calls are under way here, as many as fit; try again", cap(room)), grpc)
		}
	})
}

func refuse(w http.ResponseWriter, err error, grpc bool) {
	if grpc {
		function.RefuseGRPC(w, err, "")
		return
	}
	problem.Write(w, err, "")
}

// lasting passes on answers that go on for so long, whatever the limits of the server are for others. They end when this
// gateway is to stop: callers come again, and get to another one.
func lasting(stopping context.Context, most time.Duration, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		connection := http.NewResponseController(w)
		_ = connection.SetReadDeadline(time.Time{}) // any server can
		_ = connection.SetWriteDeadline(time.Now().Add(most + longest))
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(stopping, cancel)()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}
