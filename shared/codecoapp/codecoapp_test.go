package codecoapp_test

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/appmodel"
	"github.com/littoral-project/littoral/shared/codecoapp"
	"github.com/littoral-project/littoral/shared/network"
	"github.com/littoral-project/littoral/shared/problem"
)

const camera = `apiVersion: codeco.he-codeco.eu/v1alpha1
kind: CodecoApp
metadata: {name: camera, namespace: plant}
spec:
  appName: camera
  qosClass: Gold
  securityClass: Good
  complianceClass: High
  appEnergyLimit: "20"
  appFailureTolerance: ""
  codecoapp-msspec:
  - serviceName: front
    podspec:
      schedulerName: qos-scheduler
      containers:
      - name: c
        image: example.org/front:1
        ports: [{containerPort: 8080, protocol: TCP}]
        resources: {requests: {cpu: 250m, memory: 64Mi}, limits: {cpu: "1"}}
      - name: sidecar
        image: example.org/side:1
        resources: {limits: {cpu: 250m}}
    serviceChannels:
    - channelName: frames
      otherService: {serviceName: back, appName: camera, port: 9000}
      serviceClass: ASSURED
      advancedChannelSettings: {minBandwidth: 20M, maxDelay: 10e-3, frameSize: 1500, sendInterval: 1e-3}
  - serviceName: back
    podspec:
      containers: [{name: c, image: "example.org/back:1"}]
    serviceChannels:
    - chanelName: control
      otherService: {serviceName: front, appName: camera, port: 8080}
      advancedChannelSettings: {minBandwidth: "5", maxDelay: "300000", sendInterval: "10"}
`

func TestServicesBecomeComponents(t *testing.T) {
	t.Parallel()
	app, err := codecoapp.Parse([]byte(camera))
	require.NoError(t, err)
	require.Equal(t, appmodel.CODECO, app.Dialect)
	require.Equal(t, "camera", app.Name)
	require.Equal(t, "plant", app.Namespace)
	require.Len(t, app.Components, 2)

	front := app.Components[0]
	require.Equal(t, "front", front.Name)
	require.Equal(t, int64(500), front.Requirements.CPUMilli, "requests of one container, the limit of the other")
	require.Equal(t, int64(64<<20), front.Requirements.MemoryBytes)
	require.Len(t, front.Manifests, 2)
	require.Equal(t, "Deployment", front.Manifests[0].Kind)
	require.Contains(t, front.Manifests[0].YAML, "name: camera-front")
	require.NotContains(t, front.Manifests[0].YAML, "qos-scheduler")
	require.Equal(t, "Service", front.Manifests[1].Kind)
	require.Contains(t, front.Manifests[1].YAML, "8080")
	require.Contains(t, app.Components[1].Manifests[1].YAML, "9000", "a channel leads to it")
}

func TestChannels(t *testing.T) {
	t.Parallel()
	app, err := codecoapp.Parse([]byte(camera))
	require.NoError(t, err)
	require.Equal(t, []appmodel.Channel{{
		Name: "frames", From: "front", To: appmodel.Peer{Component: "back", Port: 9000}, Class: network.Assured,
		Bandwidth: 20_000_000, MaxLatency: 10 * time.Millisecond, FrameSize: 1500, Interval: time.Millisecond,
	}, {
		Name: "control", From: "back", To: appmodel.Peer{Component: "front", Port: 8080}, Class: network.BestEffort,
		Bandwidth: 5, MaxLatency: 300_000 * time.Second, Interval: 10 * time.Millisecond,
	}}, app.Channels)
	for _, path := range []string{"chanelName", "minBandwidth", "maxDelay", "sendInterval"} {
		require.True(t, warned(app.Warnings, path), "%s of %v", path, app.Warnings)
	}
}

func TestTheNewestFormOfAChannel(t *testing.T) {
	t.Parallel()
	app, err := codecoapp.Parse([]byte(edited(camera,
		"{minBandwidth: 20M, maxDelay: 10e-3, frameSize: 1500, sendInterval: 1e-3}", `{bandwidth: "5M", maxDelay: "1s"}`,
		"qosClass: Gold", "performanceProfile: Greenness")))
	require.NoError(t, err)
	ch := app.Channels[0]
	require.Equal(t, int64(5_000_000), ch.Bandwidth)
	require.Equal(t, time.Second, ch.MaxLatency)
	require.Equal(t, int64(codecoapp.DefaultFrame), ch.FrameSize)
	require.Equal(t, 800*time.Microsecond, ch.Interval)
	performance, energy, _, set := app.ScoreWeights()
	require.True(t, set)
	require.Greater(t, energy, performance)
}

func TestClassesAct(t *testing.T) {
	t.Parallel()
	app, err := codecoapp.Parse([]byte(edited(camera, `appFailureTolerance: ""`, "appFailureTolerance: Low")))
	require.NoError(t, err)
	require.Equal(t, 80, app.SecurityLevel("front"), "the stricter of security Good and compliance High")
	after, watched := app.LostTelemetry("front")
	require.True(t, watched)
	require.Equal(t, time.Minute, after)
	_, energy, _, _ := app.ScoreWeights()
	require.Greater(t, energy, 0.5, "a tight limit of energy")
}

func TestTheFirstGeneration(t *testing.T) {
	t.Parallel()
	app, err := codecoapp.Parse([]byte(`apiVersion: codeco.he-codeco.eu/v1alpha1
kind: CodecoApp
metadata: {name: first}
spec:
  name: first
  qosclass: Dev
  securityclass: Gold
  complianceclass: Compliant
  codecoapp-msspec:
  - name: front
    podspecname: front-spec
    required-resources: {cpu: "2", mem: "120G", nwbandwidth: "10M", nwlatency: "10"}
---
apiVersion: v1
kind: PodTemplate
metadata: {name: front-spec}
template: {spec: {containers: [{name: c, image: "example.org/front:1"}]}}
`))
	require.NoError(t, err)
	require.Equal(t, int64(2000), app.Components[0].Requirements.CPUMilli)
	require.Equal(t, int64(120_000_000_000), app.Components[0].Requirements.MemoryBytes)
	require.Equal(t, 80, app.SecurityLevel("front"))
	for _, path := range []string{"qosclass", "securityclass", "nwbandwidth"} {
		require.True(t, warned(app.Warnings, path), "%s of %v", path, app.Warnings)
	}
}

func TestEveryFaultHasItsPlace(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ document, path string }{
		"a class of no table":        {edited(camera, "qosClass: Gold", "qosClass: Platinum"), "spec.qosClass"},
		"words swapped later":        {edited(camera, "qosClass: Gold", "qosClass: High"), "spec.qosClass"},
		"a percentage above 100":     {edited(camera, `"20"`, `"200"`), "spec.appEnergyLimit"},
		"a name in capitals":         {edited(camera, "serviceName: front\n", "serviceName: Front\n"), "spec.codecoapp-msspec[0].serviceName"},
		"one name twice":             {edited(camera, "- serviceName: back\n", "- serviceName: front\n"), "spec.codecoapp-msspec[1].serviceName"},
		"no containers' place":       {edited(camera, "podspec:\n      containers: [{name: c, image: \"example.org/back:1\"}]", "other: 1"), "spec.codecoapp-msspec[1].podspec"},
		"an amount nobody reads":     {edited(camera, "cpu: 250m, memory", "cpu: many, memory"), "spec.codecoapp-msspec[0].podspec.containers[0].resources.requests.cpu"},
		"a negative bandwidth":       {edited(camera, "20M", "-20M"), "spec.codecoapp-msspec[0].serviceChannels[0].advancedChannelSettings.minBandwidth"},
		"not a number":               {edited(camera, "20M", "NaN"), "spec.codecoapp-msspec[0].serviceChannels[0].advancedChannelSettings.minBandwidth"},
		"an unknown class":           {edited(camera, "ASSURED", "BEST"), "spec.codecoapp-msspec[0].serviceChannels[0].serviceClass"},
		"a port beyond the last":     {edited(camera, "port: 9000", "port: 90000"), "spec.codecoapp-msspec[0].serviceChannels[0].otherService.port"},
		"no services":                {"apiVersion: codeco.he-codeco.eu/v1alpha1\nkind: CodecoApp\nspec: {name: a, qosclass: Dev}", "spec.codecoapp-msspec"},
		"a pod spec that is nowhere": {edited(camera, "podspec:\n      containers: [{name: c, image: \"example.org/back:1\"}]", "podspecname: gone"), "spec.codecoapp-msspec[1].podspecname"},
	} {
		_, err := codecoapp.Parse([]byte(c.document))
		var refused *problem.Error
		require.True(t, errors.As(err, &refused), "%s: %v", name, err)
		found := false
		for _, f := range refused.Fields {
			found = found || f.Path == c.path && f.Line > 0
		}
		require.True(t, found, "%s: no fault at %s with a line: %v", name, c.path, refused.Fields)
	}
}

func TestACodecoAppIsKnownByItsKind(t *testing.T) {
	t.Parallel()
	require.True(t, codecoapp.Is([]byte(camera)))
	require.False(t, codecoapp.Is([]byte("name: codeco.he-codeco.eu\ncomponents: []")))
	require.False(t, codecoapp.Is([]byte("\x00codeco.he-codeco.eu")))
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(camera))
	f.Fuzz(func(t *testing.T, doc []byte) {
		app, err := codecoapp.Parse(doc)
		if err == nil && len(app.Components) == 0 {
			t.Fatal("an application without components was accepted")
		}
	})
}

func warned(warnings []problem.Field, key string) bool {
	for _, w := range warnings {
		if strings.HasSuffix(w.Path, "."+key) {
			return true
		}
	}
	return false
}

func edited(document string, oldnew ...string) string {
	return strings.NewReplacer(oldnew...).Replace(document)
}

// TestThePageSaysWhatTheClassesDo: the numbers of shared/docs/codeco.md are those that act.
func TestThePageSaysWhatTheClassesDo(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/codeco.md")
	require.NoError(t, err)
	for word, score := range map[string]int{"High": 80, "Good": 65, "Medium": 50} {
		app, err := codecoapp.Parse([]byte(edited(camera, "securityClass: Good", "securityClass: "+word, "complianceClass: High", "complianceClass: Low")))
		require.NoError(t, err)
		require.Equal(t, score, app.SecurityLevel("front"))
	}
	require.Contains(t, string(page), "| `securityClass` | High, Good, Medium, Low, None | hard: least SCA score of the node, 80, 65, 50, 0, 0")
	for word, after := range map[string]time.Duration{"High": 5 * time.Minute, "Medium": 2 * time.Minute, "Low": time.Minute} {
		app, err := codecoapp.Parse([]byte(edited(camera, `appFailureTolerance: ""`, "appFailureTolerance: "+word)))
		require.NoError(t, err)
		got, _ := app.LostTelemetry("front")
		require.Equal(t, after, got)
	}
	require.Contains(t, string(page), "5m, 2m, 1m")
}
