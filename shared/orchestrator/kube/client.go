package kube

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	callTimeout = 10 * time.Second // a cluster that needs longer for one call is taken not to answer
	maxAnswer   = 64 << 20         // bytes
)

// Client speaks with one API server.
type Client struct {
	config Config
	http   *http.Client
}

// New returns a client; nothing is dialled.
func New(c Config) (*Client, error) {
	t := &tls.Config{
		MinVersion: tls.VersionTLS12, ServerName: c.ServerName,
		InsecureSkipVerify: c.Insecure, //nolint:gosec // said in the kubeconfig by whoever wrote it
	}
	roots, err := content(c.CA, c.CAFile)
	if err != nil {
		return nil, err
	}
	if roots != nil {
		t.RootCAs = x509.NewCertPool()
		if !t.RootCAs.AppendCertsFromPEM(roots) {
			return nil, errors.New("the certificate authority holds no certificate")
		}
	}
	cert, err := content(c.Cert, c.CertFile)
	if err != nil {
		return nil, err
	}
	key, err := content(c.Key, c.KeyFile)
	if err != nil {
		return nil, err
	}
	if cert != nil {
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("client certificate: %w", err)
		}
		t.Certificates = []tls.Certificate{pair}
	}
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSClientConfig: t, ForceAttemptHTTP2: true, IdleConnTimeout: 30 * time.Second,
		MaxIdleConnsPerHost: 4,
	}
	return &Client{config: c, http: &http.Client{Transport: transport, Timeout: callTimeout}}, nil
}

// content returns the data, or else what the file holds; nil without either.
func content(data []byte, file string) ([]byte, error) {
	if data != nil || file == "" {
		return data, nil
	}
	return os.ReadFile(file)
}

// Resources are the objects of one kind, of one namespace or of all.
type Resources struct {
	client    *Client
	resource  schema.GroupVersionResource
	namespace string
}

// Resource returns the objects of a kind.
func (c *Client) Resource(r schema.GroupVersionResource) *Resources {
	return &Resources{client: c, resource: r}
}

// Namespace narrows to those of one namespace.
func (r *Resources) Namespace(name string) *Resources {
	return &Resources{client: r.client, resource: r.resource, namespace: name}
}

func (r *Resources) path(name string) string {
	path := base(r.resource.GroupVersion())
	if r.namespace != "" {
		path += "/namespaces/" + url.PathEscape(r.namespace)
	}
	path += "/" + r.resource.Resource
	if name != "" {
		path += "/" + url.PathEscape(name)
	}
	return path
}

func base(gv schema.GroupVersion) string {
	if gv.Group == "" {
		return "/api/" + gv.Version
	}
	return "/apis/" + gv.Group + "/" + gv.Version
}

// Get reads an object. The error is apimachinery's NotFound when there is none.
func (r *Resources) Get(ctx context.Context, name string) (*unstructured.Unstructured, error) {
	return r.object(ctx, http.MethodGet, name, nil, nil, "")
}

// Create makes an object. The error is AlreadyExists when there is one of the name.
func (r *Resources) Create(
	ctx context.Context,
	o *unstructured.Unstructured,
	manager string,
) (*unstructured.Unstructured, error) {
	return r.object(ctx, http.MethodPost, "", url.Values{"fieldManager": {manager}}, o, "application/json")
}

// Update replaces an object. The error is Conflict when it has changed since the resource version that o carries.
func (r *Resources) Update(
	ctx context.Context,
	o *unstructured.Unstructured,
	manager string,
) (*unstructured.Unstructured, error) {
	return r.object(ctx, http.MethodPut, o.GetName(), url.Values{"fieldManager": {manager}}, o, "application/json")
}

// Apply applies the object on the server's side. The error is Conflict when another manager holds a field that would
// change, with a cause that says so, or when the object has changed since the resource version that o carries.
func (r *Resources) Apply(
	ctx context.Context,
	o *unstructured.Unstructured,
	manager string,
) (*unstructured.Unstructured, error) {
	query := url.Values{"fieldManager": {manager}, "force": {"false"}}
	return r.object(ctx, http.MethodPatch, o.GetName(), query, o, "application/apply-patch+yaml")
}

func (r *Resources) object(
	ctx context.Context, method, name string, query url.Values, in *unstructured.Unstructured, typ string,
) (*unstructured.Unstructured, error) {
	var body []byte
	if in != nil {
		var err error
		if body, err = in.MarshalJSON(); err != nil {
			return nil, err
		}
	}
	text, err := r.client.call(ctx, method, r.path(name), query, body, typ)
	if err != nil {
		return nil, err
	}
	out := &unstructured.Unstructured{}
	return out, out.UnmarshalJSON(text)
}

// List returns one page of the objects, and where the next begins; "" after the last.
func (r *Resources) List(
	ctx context.Context,
	selector string,
	limit int,
	from string,
) ([]unstructured.Unstructured, string, error) {
	query := url.Values{"limit": {strconv.Itoa(limit)}}
	if selector != "" {
		query.Set("labelSelector", selector)
	}
	if from != "" {
		query.Set("continue", from)
	}
	text, err := r.client.call(ctx, http.MethodGet, r.path(""), query, nil, "")
	if err != nil {
		return nil, "", err
	}
	var list unstructured.UnstructuredList
	if err := list.UnmarshalJSON(text); err != nil {
		return nil, "", err
	}
	return list.Items, list.GetContinue(), nil
}

// Each calls do for every object that the selector matches.
func (r *Resources) Each(ctx context.Context, selector string, do func(*unstructured.Unstructured)) error {
	const page = 500
	from := ""
	for {
		list, next, err := r.List(ctx, selector, page, from)
		if err != nil {
			return err
		}
		for i := range list {
			do(&list[i])
		}
		if from = next; from == "" {
			return nil
		}
	}
}

// Delete deletes an object under the options. The error is Conflict when a precondition does not hold.
func (r *Resources) Delete(ctx context.Context, name string, options metav1.DeleteOptions) error {
	options.APIVersion, options.Kind = "v1", "DeleteOptions"
	body, err := json.Marshal(options)
	if err != nil {
		return err
	}
	_, err = r.client.call(ctx, http.MethodDelete, r.path(name), nil, body, "application/json")
	return err
}

// Kinds lists what the server has in a group. The error is NotFound when it has no such group.
func (c *Client) Kinds(ctx context.Context, gv schema.GroupVersion) ([]metav1.APIResource, error) {
	text, err := c.call(ctx, http.MethodGet, base(gv), nil, nil, "")
	if err != nil {
		return nil, err
	}
	var list metav1.APIResourceList
	return list.APIResources, json.Unmarshal(text, &list)
}

// call sends one request and returns the answer. The error of a server that says no is apimachinery's StatusError.
func (c *Client) call(
	ctx context.Context,
	method, path string,
	query url.Values,
	body []byte,
	typ string,
) ([]byte, error) {
	target := c.config.Server + path
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	r, err := http.NewRequestWithContext(ctx, method, target, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "application/json")
	r.Header.Set("User-Agent", "littoral")
	if typ != "" {
		r.Header.Set("Content-Type", typ)
	}
	if err := c.authorize(r); err != nil {
		return nil, err
	}
	resp, err := c.http.Do(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, err
	}
	if resp.StatusCode/100 != 2 {
		return nil, refusal(method, path, resp.StatusCode, text)
	}
	return text, nil
}

func (c *Client) authorize(r *http.Request) error {
	token := c.config.Token
	if c.config.TokenFile != "" {
		text, err := os.ReadFile(c.config.TokenFile)
		if err != nil {
			return fmt.Errorf("read the token: %w", err)
		}
		token = strings.TrimSpace(string(text))
	}
	switch {
	case token != "":
		r.Header.Set("Authorization", "Bearer "+token)
	case c.config.Username != "":
		r.SetBasicAuth(c.config.Username, c.config.Password)
	}
	return nil
}

// refusal reads what the server says; one that is no API server, or one on the way, says it in its own words.
func refusal(method, path string, code int, text []byte) error {
	var status metav1.Status
	if json.Unmarshal(text, &status) == nil && status.Kind == "Status" {
		if status.Code == 0 {
			status.Code = int32(code) //nolint:gosec // a status of HTTP
		}
		return &apierrors.StatusError{ErrStatus: status}
	}
	err := apierrors.NewGenericServerResponse(code, strings.ToLower(method), schema.GroupResource{}, "", "", 0, true)
	err.ErrStatus.Message = fmt.Sprintf("%s %s: %d: %s", method, path, code, text[:min(len(text), 300)])
	return err
}
