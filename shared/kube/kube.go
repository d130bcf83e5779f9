// Package kube speaks with the API of a cluster through client-go's dynamic client: whatever functions keep in clusters,
// of whatever kind, goes through here.
//
// Of client-go it takes the requests and the credentials, and leaves the rest behind, which is what keeps an
// image with it under 6 MB: no clientset, no informers, and no loader of kubeconfigs. The loader would also run the
// programs that a file names for credentials, which no function should.
package kube

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"sigs.k8s.io/yaml"
)

const (
	callTimeout = 10 * time.Second // a cluster that needs longer for one call is taken not to answer
	idleTimeout = 30 * time.Second
	pageLimit   = 50 // objects of a list at once: works and inventories are some 10 kB each, and many times that in memory
)

// Client speaks with one API server.
type Client struct {
	dynamic.Interface

	rest rest.Interface
}

// New returns a client of the server at the URL; nothing is dialled. how is read here, files that it names included.
func New(server string, how *transport.Config) (*Client, error) {
	// Put together from client-go's own parts, since the whole brings programs for credentials and a second HTTP/2.
	trust, err := transport.TLSConfigFor(how)
	if err != nil {
		return nil, err
	}
	proxy := how.Proxy
	if proxy == nil {
		proxy = http.ProxyFromEnvironment
	}
	base := &http.Transport{
		Proxy: proxy, TLSClientConfig: trust, ForceAttemptHTTP2: true, IdleConnTimeout: idleTimeout,
	}
	through, err := transport.HTTPWrappersForConfig(how, base)
	if err != nil {
		return nil, err
	}
	config := dynamic.ConfigFor(&rest.Config{
		Host: server, QPS: -1, WarningHandlerWithContext: rest.NoWarnings{}, // the server limits the rate
	})
	caller, err := rest.UnversionedRESTClientForConfigAndClient(
		config, &http.Client{Transport: through, Timeout: callTimeout, CheckRedirect: stay},
	)
	if err != nil {
		return nil, err
	}
	return &Client{dynamic.New(once{caller}), once{caller}}, nil
}

// stay follows no redirects, so that a server cannot send us, and with us the token, to another address.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// once sends each request only once. client-go by itself would ask a server that is overloaded or hangs up ten times, a
// second apart. Here the Broker, the cron or the caller repeats what failed, and no function sits waiting.
type once struct{ rest.Interface }

func (o once) Get() *rest.Request    { return o.Interface.Get().MaxRetries(0) }
func (o once) Post() *rest.Request   { return o.Interface.Post().MaxRetries(0) }
func (o once) Put() *rest.Request    { return o.Interface.Put().MaxRetries(0) }
func (o once) Delete() *rest.Request { return o.Interface.Delete().MaxRetries(0) }

func (o once) Patch(t types.PatchType) *rest.Request { return o.Interface.Patch(t).MaxRetries(0) }

// InCluster names the cluster that a function itself runs in, in place of a file.
const InCluster = "in-cluster"

// account is where the token of the pod's ServiceAccount is mounted, if it is.
const account = "/var/run/secrets/kubernetes.io/serviceaccount"

// Open returns a client of the cluster: InCluster, or the path of a kubeconfig. Nothing is dialled. In its own cluster
// a function uses KUBERNETES_TOKEN, else the ServiceAccount mounted into its pod. wrap, which may be nil, is put around
// its calls.
func Open(where string, wrap transport.WrapperFunc) (*Client, error) {
	if where == InCluster {
		return inCluster(account, os.Getenv, wrap)
	}
	text, err := os.ReadFile(where)
	if err != nil {
		return nil, err
	}
	c, err := Read(text, wrap)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", where, err)
	}
	return c, nil
}

func inCluster(account string, getenv func(string) string, wrap transport.WrapperFunc) (*Client, error) {
	host, port := getenv("KUBERNETES_SERVICE_HOST"), getenv("KUBERNETES_SERVICE_PORT")
	if host == "" || port == "" {
		return nil, errors.New("this process runs in no cluster: KUBERNETES_SERVICE_HOST and _PORT are not set")
	}
	how := as(wrap)
	if token := getenv("KUBERNETES_TOKEN"); token != "" { // mounting a volume would delay the pod by a third of a second
		how.TLS.CAData, how.BearerToken = []byte(getenv("KUBERNETES_CA")), token
	} else {
		how.TLS.CAFile = filepath.Join(account, "ca.crt")
		how.BearerTokenFile = filepath.Join(account, "token") // read again and again, since it is renewed every hour
	}
	return New("https://"+net.JoinHostPort(host, port), how)
}

func as(wrap transport.WrapperFunc) *transport.Config {
	return &transport.Config{UserAgent: "littoral", WrapTransport: wrap}
}

// Read returns a client of the cluster that the current context of a kubeconfig names.
func Read(kubeconfig []byte, wrap transport.WrapperFunc) (*Client, error) {
	how := as(wrap)
	server, err := parse(kubeconfig, how)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	return New(server, how)
}

// file is the part of a kubeconfig that is read.
type file struct {
	Current  string `json:"current-context"`
	Contexts []struct {
		Name    string `json:"name"`
		Context struct {
			Cluster string `json:"cluster"`
			User    string `json:"user"`
		} `json:"context"`
	} `json:"contexts"`
	Clusters []struct {
		Name    string `json:"name"`
		Cluster struct {
			Server     string `json:"server"`
			ServerName string `json:"tls-server-name"`
			Proxy      string `json:"proxy-url"`
			Insecure   bool   `json:"insecure-skip-tls-verify"`
			CAFile     string `json:"certificate-authority"`
			CAData     string `json:"certificate-authority-data"`
		} `json:"cluster"`
	} `json:"clusters"`
	Users []struct {
		Name string `json:"name"`
		User struct {
			CertFile  string              `json:"client-certificate"`
			CertData  string              `json:"client-certificate-data"`
			KeyFile   string              `json:"client-key"`
			KeyData   string              `json:"client-key-data"`
			Token     string              `json:"token"`
			TokenFile string              `json:"tokenFile"`
			As        string              `json:"as"`
			AsUID     string              `json:"as-uid"`
			AsGroups  []string            `json:"as-groups"`
			AsExtra   map[string][]string `json:"as-user-extra"`
			Username  string              `json:"username"`
			Password  string              `json:"password"`
			Exec      map[string]any      `json:"exec"`
			Provider  map[string]any      `json:"auth-provider"`
		} `json:"user"`
	} `json:"users"`
}

// parse reads the current context of a kubeconfig into how. Credentials that a program would have to fetch are an
// error: use a token or a certificate.
func parse(text []byte, how *transport.Config) (server string, err error) {
	var f file
	if err := yaml.Unmarshal(text, &f); err != nil {
		return "", err
	}
	var cluster, user string
	for _, entry := range f.Contexts {
		if entry.Name == f.Current || f.Current == "" && len(f.Contexts) == 1 {
			cluster, user = entry.Context.Cluster, entry.Context.User
		}
	}
	var data decoder
	for _, entry := range f.Clusters {
		if entry.Name == cluster {
			server = strings.TrimSuffix(entry.Cluster.Server, "/")
			how.TLS.ServerName, how.TLS.Insecure = entry.Cluster.ServerName, entry.Cluster.Insecure
			how.TLS.CAFile, how.TLS.CAData = entry.Cluster.CAFile, data.decode(entry.Cluster.CAData)
			if entry.Cluster.Proxy != "" {
				proxy, err := url.Parse(entry.Cluster.Proxy)
				if err != nil { // whose text has the password of the proxy
					return "", fmt.Errorf("proxy-url of cluster %q is not a URL", cluster)
				}
				how.Proxy = http.ProxyURL(proxy)
			}
		}
	}
	if server == "" {
		return "", fmt.Errorf("context %q names no cluster with a server", f.Current)
	}
	for _, entry := range f.Users {
		if entry.Name != user {
			continue
		}
		u := entry.User
		if u.Exec != nil || u.Provider != nil {
			return "", fmt.Errorf(
				"user %q gets its credentials by a program, which is not run: use a token or a certificate", user,
			)
		}
		how.TLS.CertFile, how.TLS.CertData = u.CertFile, data.decode(u.CertData)
		how.TLS.KeyFile, how.TLS.KeyData = u.KeyFile, data.decode(u.KeyData)
		if (u.CertFile+u.CertData == "") != (u.KeyFile+u.KeyData == "") {
			return "", fmt.Errorf("user %q has a certificate or a key, and not the other", user)
		}
		how.BearerToken, how.BearerTokenFile = u.Token, u.TokenFile
		how.Username, how.Password = u.Username, u.Password
		how.Impersonate = transport.ImpersonationConfig{UserName: u.As, UID: u.AsUID, Groups: u.AsGroups, Extra: u.AsExtra}
	}
	return server, data.err
}

// decoder keeps the first fault.
type decoder struct{ err error }

func (d *decoder) decode(text string) []byte {
	if text == "" {
		return nil
	}
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil && d.err == nil {
		d.err = fmt.Errorf("data that is not base64: %w", err)
	}
	return raw
}

// Each calls do for every object that the selector matches. If the list changes while its pages are read, reading
// continues.
func Each(
	ctx context.Context, r dynamic.ResourceInterface, selector string, do func(*unstructured.Unstructured),
) error {
	return Pages(ctx, r, metav1.ListOptions{LabelSelector: selector}, func(page *unstructured.UnstructuredList) error {
		for i := range page.Items {
			do(&page.Items[i])
		}
		return nil
	})
}

// Pages calls do for every page of what the options select, in the same way. The resource version of a page is that of the
// cluster at which it was so.
func Pages(
	ctx context.Context, r dynamic.ResourceInterface, options metav1.ListOptions, do func(*unstructured.UnstructuredList) error,
) error {
	options.Limit = pageLimit
	for {
		list, err := r.List(ctx, options)
		var expired apierrors.APIStatus
		if apierrors.IsResourceExpired(err) && errors.As(err, &expired) && expired.Status().Continue != "" {
			options.Continue = expired.Status().Continue
			continue
		}
		if err != nil {
			return err
		}
		if err := do(list); err != nil {
			return err
		}
		if options.Continue = list.GetContinue(); options.Continue == "" {
			return nil
		}
	}
}

// EachMetadata is Each in all namespaces for metadata alone; the rest of the objects, which may be large, is not sent.
func (c *Client) EachMetadata(
	ctx context.Context, of schema.GroupVersionResource, selector string, do func(*unstructured.Unstructured),
) error {
	return Each(ctx, dynamic.New(metadata{once{c.rest}}).Resource(of), selector, do)
}

// metadata asks for lists of metadata.
type metadata struct{ once }

func (m metadata) Get() *rest.Request {
	return m.once.Get().SetHeader("Accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1")
}

// Kinds lists what the server has in a group. The error is NotFound when it has no such group.
func (c *Client) Kinds(ctx context.Context, gv schema.GroupVersion) ([]metav1.APIResource, error) {
	path := []string{"apis", gv.Group, gv.Version}
	if gv.Group == "" {
		path = []string{"api", gv.Version}
	}
	answer := c.rest.Get().AbsPath(path...).Do(ctx)
	if err := answer.Error(); err != nil {
		return nil, err
	}
	text, err := answer.Raw()
	if err != nil {
		return nil, err
	}
	var list metav1.APIResourceList
	return list.APIResources, json.Unmarshal(text, &list)
}

// Text returns what the server answers at the path when that is no object, such as the log of a pod, at most so many bytes of it.
func (c *Client) Text(ctx context.Context, query map[string]string, most int64, path ...string) (string, error) {
	r := c.rest.Get().AbsPath(path...)
	for name, value := range query {
		r = r.Param(name, value)
	}
	body, err := r.Stream(ctx)
	if err != nil {
		return "", err
	}
	defer func() { _ = body.Close() }()
	text, err := io.ReadAll(io.LimitReader(body, most))
	return string(text), err
}

// IsForeign reports whether the error was not sent by the API in question: by a server on the way, or by an API server
// without such a kind.
func IsForeign(err error) bool {
	return apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// IsAbsent reports whether the API itself says that there is no such object.
func IsAbsent(err error) bool { return apierrors.IsNotFound(err) && !IsForeign(err) }
