package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"strings"

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
}

// readTables reads every *.txt. A line is "service pattern", for example "jobmanager-job-get GET
// /jobmanager/jobs/{job_uuid}", or "issuer /oidc/" for everything below that path. # begins a comment. " > " is
// followed by the functions that such a call will need.
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
			service, pattern, ok := strings.Cut(strings.TrimSpace(line), " ")
			switch {
			case ok:
				routes = append(routes, route{service, strings.TrimSpace(pattern), strings.TrimSpace(wakes)})
			case service != "":
				return nil, fmt.Errorf("%s:%d: %q is not a service and a pattern", name, n, line)
			}
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

// newHandler serves the routes, and its own GET /healthz. host returns the address of a service.
func newHandler(
	routes []route, host func(service string) string, t http.RoundTripper, waker *wake.Waker,
) (_ http.Handler, err error) {
	defer func() {
		if p := recover(); p != nil { // ServeMux panics on an invalid pattern, or on one that conflicts with another
			err = fmt.Errorf("routes: %v", p)
		}
	}()
	router := function.NewRouter()
	for _, r := range routes {
		router.Handle(r.pattern, waker.Handler(pass(host(r.service), t), r.service))
	}
	router.Handle("GET /healthz", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("ok\n"))
	}))
	return router, nil
}

// pass forwards requests to the service at host; Knative routes by that Host header. It adds the caller's trace, or
// starts one.
func pass(host string, t http.RoundTripper) http.Handler {
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
			problem.Write(w, problem.Wrap(problem.Unavailable, err, "the function cannot be reached; try again"), "")
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

// limit refuses calls beyond n at once: running out of memory would end the calls that are under way too. Probes do not count.
func limit(n int, next http.Handler) http.Handler {
	slots := make(chan struct{}, n)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == function.HealthPath {
			next.ServeHTTP(w, r)
			return
		}
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
			next.ServeHTTP(w, r)
		default:
			problem.Write(w, problem.New(problem.Unavailable, "%d calls are under way here, as many as fit; try again", n), "")
		}
	})
}
