package knative_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/objects/s3/s3test"
	"github.com/littoral-project/littoral/test/relay"
)

// relay leads from an address of this machine that pods reach to one that only this machine does, until the test ends.
func (w *world) relay(t *testing.T, to string) net.Addr {
	t.Helper()
	at := relay.Open(t, w.here(), to, nil)
	w.admit(t, at)
	return at
}

// changeSecret changes secret settings of the functions during the test.
func (w *world) changeSecret(values map[string]string) {
	w.t.Helper()
	set := func(values map[string]string) {
		data := map[string]any{}
		for key, value := range values {
			data[key] = nil
			if value != "" {
				data[key] = base64.StdEncoding.EncodeToString([]byte(value))
			}
		}
		patch, err := json.Marshal(map[string]any{"data": data})
		require.NoError(w.t, err)
		w.kubectl("patch", "secret", "littoral", "--type=merge", "-p", string(patch))
	}
	before := map[string]string{}
	for key := range values {
		value, err := w.Secret("littoral", key)
		require.NoError(w.t, err)
		before[key] = value
	}
	set(values)
	w.t.Cleanup(func() { set(before) })
}

// renew ends the pods of functions, so that the next ones have the present settings.
func (w *world) renew(functions ...string) {
	w.t.Helper()
	w.kubectl("delete", "pods", "-l", "serving.knative.dev/service in ("+strings.Join(functions, ",")+")", "--wait=false")
}

// keepObjects gives the functions a bucket of a real S3 server on this machine, for models, unless they have an object store.
func (w *world) keepObjects(t *testing.T) {
	t.Helper()
	if w.setting("OBJECTS_URL") != "" {
		return
	}
	b := s3test.Start(t).Bucket(t)
	at, err := url.Parse(b.Endpoint)
	require.NoError(t, err)
	w.changeSecret(map[string]string{"AWS_ACCESS_KEY_ID": b.AccessKey, "AWS_SECRET_ACCESS_KEY": b.SecretKey})
	w.change("OBJECTS_URL", fmt.Sprintf("s3://%s/littoral?endpoint=http://%s&path_style=true", b.Bucket, w.relay(t, at.Host)))
}

var window = regexp.MustCompile(`out_of_order_time_window: *\S+`)

// takeThePast lets the cluster's Prometheus take samples that are up to so old, during the test: it reads its ConfigMap anew when
// asked, once the kubelet has brought that.
func (w *world) takeThePast(age time.Duration) {
	w.t.Helper()
	const object, key = "configmap/prometheus", "prometheus.yml"
	address := w.setting("PROMETHEUS_ADDRESS")
	at, err := url.Parse(address)
	require.NoError(w.t, err)
	namespace := strings.Split(at.Hostname()+"..", ".")[1]
	text, err := w.Kubectl("-n", namespace, "get", object, "-o", `jsonpath={.data.prometheus\.yml}`)
	if err != nil || !window.MatchString(text) {
		w.t.Skipf("the Prometheus at %s has no ConfigMap here that says how old samples it takes: %v", address, err)
	}
	set := func(text string) {
		patch, err := json.Marshal(map[string]any{"data": map[string]string{key: text + "\n"}})
		require.NoError(w.t, err)
		w.kubectl("-n", namespace, "patch", object, "--type=merge", "-p", string(patch))
	}
	wanted := "out_of_order_time_window: " + age.String()
	if strings.Contains(text, wanted) {
		return
	}
	w.t.Cleanup(func() { set(text) })
	set(window.ReplaceAllString(text, wanted))
	inside := w.Inside()
	w.eventually("Prometheus takes samples of the past", func() bool {
		if r, err := inside.Post(address+"/-/reload", "", http.NoBody); err == nil {
			_ = r.Body.Close()
		}
		r, err := inside.Get(address + "/api/v1/status/config")
		if err != nil {
			return false
		}
		defer func() { _ = r.Body.Close() }()
		var now struct{ Data struct{ YAML string } }
		if json.NewDecoder(r.Body).Decode(&now) != nil {
			return false
		}
		found := window.FindString(now.Data.YAML)
		d, err := time.ParseDuration(strings.TrimSpace(strings.TrimPrefix(found, "out_of_order_time_window:")))
		return err == nil && d >= age
	})
}
