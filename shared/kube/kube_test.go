package kube

import (
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/transport"

	"github.com/littoral-project/littoral/test/kubeapi"
)

var (
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	sensors    = schema.GroupVersionResource{Group: "lab.example", Version: "v1", Resource: "sensors"}
)

func open(t *testing.T) (*Client, *kubeapi.Server) {
	t.Helper()
	s := kubeapi.Start(t, []string{"one"}, nil)
	c, err := Read([]byte(s.Kubeconfig()), nil)
	require.NoError(t, err)
	return c, s
}

func configMap(name, value string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}, "data": map[string]any{"a": value},
	}}
}

// TestAnswers: errors of the API become the corresponding errors of apimachinery, and each request is sent once.
func TestAnswers(t *testing.T) {
	t.Parallel()
	c, s := open(t)
	at := c.Resource(configMaps).Namespace("one")
	mine, theirs := metav1.ApplyOptions{FieldManager: "mine"}, metav1.ApplyOptions{FieldManager: "theirs"}
	_, err := at.Get(t.Context(), "a", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err) && !IsForeign(err), "%v", err)
	first, err := at.Apply(t.Context(), "a", configMap("a", "1"), mine)
	require.NoError(t, err)
	_, err = at.Create(t.Context(), configMap("a", "1"), metav1.CreateOptions{})
	require.True(t, apierrors.IsAlreadyExists(err), "%v", err)
	_, err = at.Apply(t.Context(), "a", configMap("a", "2"), theirs)
	require.True(t, apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict), "%v", err)
	_, err = at.Apply(t.Context(), "a", configMap("a", "2"), mine)
	require.NoError(t, err)
	_, err = at.Update(t.Context(), first, metav1.UpdateOptions{FieldManager: "mine"})
	require.True(t, apierrors.IsConflict(err), "%v", err)
	version := first.GetResourceVersion()
	err = at.Delete(t.Context(), "a", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &version}})
	require.True(t, apierrors.IsConflict(err), "%v", err)
	require.NoError(t, at.Delete(t.Context(), "a", metav1.DeleteOptions{}))

	_, err = c.Resource(sensors).Namespace("one").Get(t.Context(), "a", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err) && IsForeign(err), "%v", err)

	before := len(s.Calls())
	s.Refuse(func(string, string) error { return apierrors.NewTooManyRequests("later", 30) })
	_, err = at.Create(t.Context(), configMap("b", "1"), metav1.CreateOptions{})
	require.True(t, apierrors.IsTooManyRequests(err), "%v", err)
	require.Len(t, s.Calls(), before+1, "nobody waits here for a server that asks for time")
}

func TestEachReadsAllPages(t *testing.T) {
	t.Parallel()
	c, s := open(t)
	s.Page(2)
	for _, name := range strings.Split("abcdefg", "") {
		_, err := c.Resource(configMaps).Namespace("one").Create(t.Context(), configMap(name, ""), metav1.CreateOptions{})
		require.NoError(t, err)
	}
	var names string
	require.NoError(t, Each(t.Context(), c.Resource(configMaps), "", func(o *unstructured.Unstructured) {
		if names += o.GetName(); names == "abcd" {
			s.Compact()
		}
	}))
	require.Equal(t, "abcdefg", names, "what expires in the middle is read on")
	s.Cut(true)
	require.Error(t, Each(t.Context(), c.Resource(configMaps), "", func(*unstructured.Unstructured) {}))
}

// TestEachMetadata: the content of the objects is not even sent.
func TestEachMetadata(t *testing.T) {
	t.Parallel()
	c, s := open(t)
	s.Page(1)
	for _, name := range []string{"a", "b"} {
		_, err := c.Resource(configMaps).Namespace("one").Create(t.Context(), configMap(name, "much"), metav1.CreateOptions{})
		require.NoError(t, err)
	}
	var names string
	require.NoError(t, c.EachMetadata(t.Context(), configMaps, "", func(o *unstructured.Unstructured) {
		require.NotContains(t, o.Object, "data")
		require.NotEmpty(t, o.GetResourceVersion())
		names += o.GetName()
	}))
	require.Equal(t, "ab", names)
}

func TestKinds(t *testing.T) {
	t.Parallel()
	c, s := open(t)
	_, err := c.Kinds(t.Context(), sensors.GroupVersion())
	require.True(t, apierrors.IsNotFound(err), "%v", err)
	s.Define(sensors.Group, sensors.Version, "Sensor", sensors.Resource, true)
	list, err := c.Kinds(t.Context(), sensors.GroupVersion())
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, "Sensor", list[0].Kind)
	s.Cut(true)
	_, err = c.Kinds(t.Context(), sensors.GroupVersion())
	require.Error(t, err)
	require.False(t, apierrors.IsNotFound(err))
}

// TestNoClusterSendsUsElsewhere: a redirect could reach addresses in our own network, and send them a token of the
// cluster.
func TestNoClusterSendsUsElsewhere(t *testing.T) {
	t.Parallel()
	var asked []string
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.Header.Get("Authorization"))
	}))
	t.Cleanup(elsewhere.Close)
	for _, status := range []int{http.StatusFound, http.StatusTemporaryRedirect} {
		s := httptest.NewServer(http.RedirectHandler(elsewhere.URL, status))
		t.Cleanup(s.Close)
		c, err := New(s.URL, &transport.Config{BearerToken: "secret"})
		require.NoError(t, err)
		at := c.Resource(configMaps).Namespace("one")
		_, err = at.Get(t.Context(), "a", metav1.GetOptions{})
		require.Error(t, err)
		require.False(t, apierrors.IsNotFound(err), "nothing is known of it")
		_, err = at.Apply(t.Context(), "a", configMap("a", "1"), metav1.ApplyOptions{FieldManager: "mine"})
		require.Error(t, err)
	}
	require.Empty(t, asked)
}

// TestInCluster: the server is verified with the cluster's own certificate, and calls carry the account's token and use
// the caller's transport.
func TestInCluster(t *testing.T) {
	t.Parallel()
	var sent []string
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent = append(sent, r.Header.Get("Authorization")+" "+r.Header.Get("User-Agent")+" "+r.Header.Get("Seen"))
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}`))
	}))
	t.Cleanup(server.Close)
	u, err := url.Parse(server.URL)
	require.NoError(t, err)
	host, port, err := net.SplitHostPort(u.Host)
	require.NoError(t, err)
	variables := map[string]string{"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}
	env := func(name string) string { return variables[name] }
	account := t.TempDir()
	write := func(name string, text []byte) {
		require.NoError(t, os.WriteFile(filepath.Join(account, name), text, 0o600))
	}
	_, err = inCluster(account, env, nil)
	require.ErrorContains(t, err, "ca.crt")
	write("ca.crt", []byte("none"))
	_, err = inCluster(account, env, nil)
	require.ErrorContains(t, err, "certificate")
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	write("ca.crt", certificate)
	_, err = inCluster(account, env, nil)
	require.ErrorContains(t, err, "token")
	write("token", []byte("one\n"))
	ask := func(account string) {
		c, err := inCluster(account, env, func(base http.RoundTripper) http.RoundTripper { return seen{base} })
		require.NoError(t, err)
		_, err = c.Resource(configMaps).Namespace("one").Get(t.Context(), "a", metav1.GetOptions{})
		require.NoError(t, err)
	}
	ask(account)
	require.Equal(t, []string{"Bearer one littoral yes"}, sent)
	variables["KUBERNETES_TOKEN"], variables["KUBERNETES_CA"] = "two", string(certificate)
	ask("nothing is mounted")
	require.Equal(t, "Bearer two littoral yes", sent[1])
	_, err = inCluster(account, func(string) string { return "" }, nil)
	require.ErrorContains(t, err, "no cluster")
}

type seen struct{ http.RoundTripper }

func (s seen) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Seen", "yes")
	return s.RoundTripper.RoundTrip(r)
}

func TestKubeconfigs(t *testing.T) {
	t.Parallel()
	const rest = `
current-context: b
contexts: [{name: a, context: {cluster: a}}, {name: b, context: {cluster: b, user: u}}]
clusters: [{name: a, cluster: {server: "https://a"}}, {name: b, cluster: {server: "https://b:6443/", tls-server-name: s}}]
users: [{name: u, user: `
	how := &transport.Config{}
	server, err := parse([]byte(rest+"{token: t}}]"), how)
	require.NoError(t, err)
	require.Equal(t, "https://b:6443", server)
	require.Equal(t, "t", how.BearerToken)
	require.Equal(t, "s", how.TLS.ServerName)
	for name, row := range map[string]struct{ text, want string }{
		"credentials by a program":     {rest + "{exec: {command: rm}}}]", "program, which is not run"},
		"credentials by a provider":    {rest + "{auth-provider: {name: x}}}]", "program, which is not run"},
		"a certificate without a key":  {rest + "{client-certificate-data: YQ==}}]", "and not the other"},
		"data that is none":            {rest + "{client-certificate-data: '*', client-key-data: YQ==}}]", "base64"},
		"a certificate that is none":   {rest + "{client-certificate-data: YQ==, client-key-data: YQ==}}]", "PEM"},
		"a token that is not there":    {rest + "{tokenFile: /nowhere}}]", "/nowhere"},
		"a context that is not there":  {"current-context: x", `context "x"`},
		"an empty one":                 {"", "names no cluster"},
		"something else":               {"[", "kubeconfig"},
		"two ways to say who it is":    {rest + "{token: t, username: u}}]", "but not both"},
		"a server that is no address":  {strings.Replace(rest, "https://b:6443/", "https://b c", 1) + "{}}]", "b c"},
		"an authority that is no such": {strings.Replace(rest, "tls-server-name: s", "certificate-authority-data: YQ==", 1) + "{}}]", "PEM"},
	} {
		_, err := Read([]byte(row.text), nil)
		require.ErrorContains(t, err, row.want, name)
	}
	_, err = Open(filepath.Join(t.TempDir(), "none"), nil)
	require.ErrorIs(t, err, os.ErrNotExist)
}

// TestRead_asWhomAndThroughWhat: to act as the account itself would give other rights than the kubeconfig asks for.
func TestRead_asWhomAndThroughWhat(t *testing.T) {
	t.Parallel()
	var host, as string
	var groups []string
	proxy := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		host, as, groups = r.Host, r.Header.Get("Impersonate-User"), r.Header.Values("Impersonate-Group")
	}))
	t.Cleanup(proxy.Close)
	kubeconfig := `{"current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
"clusters": [{"name": "c", "cluster": {"server": "http://cluster.example", "proxy-url": "` + proxy.URL + `"}}],
"users": [{"name": "u", "user": {"token": "t", "as": "deployer", "as-groups": ["a", "b"]}}]}`
	c, err := Read([]byte(kubeconfig), nil)
	require.NoError(t, err)
	_, _ = c.Kinds(t.Context(), sensors.GroupVersion())
	require.Equal(t, "cluster.example", host)
	require.Equal(t, "deployer", as)
	require.Equal(t, []string{"a", "b"}, groups)

	_, err = Read([]byte(strings.ReplaceAll(kubeconfig, proxy.URL, "http://me:secret@[")), nil)
	require.ErrorContains(t, err, "proxy-url")
	require.NotContains(t, err.Error(), "secret")
}
