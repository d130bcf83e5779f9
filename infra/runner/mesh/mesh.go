// Package mesh gives Services and Brokers the addresses they have on a cluster, and handles requests to those addresses
// inside this process.
//
// So code that sends events uses plain HTTP to http://<name>.<namespace>.svc.cluster.local, whether it runs on a
// cluster or not.
package mesh

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"knative.dev/pkg/apis"
	duckv1 "knative.dev/pkg/apis/duck/v1"
)

// IngressHost is the address at which every Broker accepts events, with the path /<namespace>/<name>.
const IngressHost = "broker-ingress.knative-eventing.svc.cluster.local"

// ServiceHost is the address of a Service.
func ServiceHost(name types.NamespacedName) string {
	return name.Name + "." + name.Namespace + ".svc.cluster.local"
}

// Resolve returns the URL of a destination whose reference is known to exist.
func Resolve(d *duckv1.Destination) (*apis.URL, error) {
	if d.Ref == nil {
		return d.URI, nil
	}
	name := types.NamespacedName{Namespace: d.Ref.Namespace, Name: d.Ref.Name}
	var base *apis.URL
	switch d.Ref.Kind {
	case "Service":
		base = &apis.URL{Scheme: "http", Host: ServiceHost(name)}
	case "Broker":
		base = &apis.URL{Scheme: "http", Host: IngressHost, Path: "/" + name.String()}
	default:
		return nil, fmt.Errorf("no address for %s %s", d.Ref.Kind, name)
	}
	if d.URI == nil {
		return base, nil
	}
	return base.ResolveReference(d.URI), nil
}

// Mesh is a RoundTripper that serves the hosts it knows, and passes requests to other hosts on.
type Mesh struct {
	mu       sync.RWMutex
	handlers map[string]http.Handler
	outside  http.RoundTripper
	running  sync.WaitGroup
}

// New returns an empty Mesh; requests to unknown hosts go to outside.
func New(outside http.RoundTripper) *Mesh {
	return &Mesh{handlers: map[string]http.Handler{}, outside: outside}
}

// Handle makes h serve host.
func (m *Mesh) Handle(host string, h http.Handler) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.handlers[host] = h
}

// RoundTrip implements http.RoundTripper. If the request is cancelled it returns at once, as with a broken connection,
// and the handler's context ends.
func (m *Mesh) RoundTrip(r *http.Request) (*http.Response, error) {
	m.mu.RLock()
	h := m.handlers[r.URL.Host]
	m.mu.RUnlock()
	if h == nil {
		return m.outside.RoundTrip(r)
	}
	inner := r.Clone(r.Context())
	inner.Host, inner.RequestURI, inner.RemoteAddr = r.URL.Host, r.URL.RequestURI(), "in-process"
	if inner.URL.Path == "" {
		inner.URL.Path = "/"
	}
	if inner.Body == nil {
		inner.Body = http.NoBody
	}
	w := &recorder{header: http.Header{}, streams: make(chan *http.Response, 1), request: r}
	done := make(chan error, 1)
	m.running.Go(func() {
		defer func() { _ = inner.Body.Close() }()
		err := serve(h, w, inner)
		w.end(err)
		done <- err
	})
	select {
	case response := <-w.streams:
		return response, nil
	case err := <-done:
		if err != nil {
			return nil, err
		}
		return w.response(), nil
	case <-r.Context().Done():
		return nil, context.Cause(r.Context())
	}
}

// Wait returns when no handler runs any more, or when ctx ends. A handler may still be running after its request was
// cancelled.
func (m *Mesh) Wait(ctx context.Context) error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		m.running.Wait()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// serve turns a panic into the error that a client gets from a crashed server.
func serve(h http.Handler, w http.ResponseWriter, r *http.Request) (err error) {
	defer func() {
		switch p := recover(); p {
		case nil:
		case http.ErrAbortHandler:
			err = errors.New("connection reset by the handler")
		default:
			err = fmt.Errorf("the handler panicked: %v\n%s", p, debug.Stack())
		}
	}()
	h.ServeHTTP(w, r)
	return nil
}

// recorder is an http.ResponseWriter that stores the answer. After a flush it is a stream: it was handed out, and what is
// written goes to whoever reads it.
type recorder struct {
	header  http.Header
	sent    http.Header // the headers at the first write
	code    int
	body    bytes.Buffer
	request *http.Request

	streams chan *http.Response // gets the answer when it is flushed
	pipe    *io.PipeWriter      // to the reader of a stream; nil before that
}

func (w *recorder) Header() http.Header { return w.header }

func (w *recorder) WriteHeader(code int) {
	if w.sent == nil {
		w.code, w.sent = code, w.header.Clone()
	}
}

func (w *recorder) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if w.pipe != nil {
		return w.pipe.Write(b)
	}
	return w.body.Write(b)
}

// Flush hands out the answer as it is; its body goes on with what is written from here on.
func (w *recorder) Flush() {
	if w.pipe != nil {
		return // what is written is read at once
	}
	var rest *io.PipeReader
	rest, w.pipe = io.Pipe()
	context.AfterFunc(w.request.Context(), func() { _ = rest.CloseWithError(context.Cause(w.request.Context())) })
	response := w.response()
	response.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(response.Body, rest), rest}
	response.ContentLength = -1
	w.streams <- response
}

// end ends a stream.
func (w *recorder) end(err error) {
	if w.pipe != nil {
		_ = w.pipe.CloseWithError(err)
	}
}

func (w *recorder) response() *http.Response {
	w.WriteHeader(http.StatusOK)
	return &http.Response{
		Status: fmt.Sprintf("%d %s", w.code, http.StatusText(w.code)), StatusCode: w.code,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: w.sent, Request: w.request,
		Body: io.NopCloser(&w.body), ContentLength: int64(w.body.Len()),
	}
}
