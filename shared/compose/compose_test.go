package compose_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/compose"
)

func load(t *testing.T, texts ...string) *compose.Project {
	t.Helper()
	p, err := compose.Load(t.Context(), files(texts))
	require.NoError(t, err)
	return p
}

func files(texts []string) (all []compose.File) {
	for _, text := range texts {
		all = append(all, compose.File{Name: "compose", Text: text})
	}
	return all
}

func text(t *testing.T, p *compose.Project) string {
	t.Helper()
	out, err := p.Text()
	require.NoError(t, err)
	again, err := load(t, out).Text()
	require.NoError(t, err)
	require.Equal(t, out, again, "what is written reads the same")
	return out
}

func TestLaterFilesAreMergedOverEarlierOnes(t *testing.T) {
	t.Parallel()
	out := text(t, load(t, "services: {web: {image: a, ports: ['80:80']}}", "services: {web: {image: b}, cache: {image: c}}"))
	require.Contains(t, out, "image: b")
	require.Contains(t, out, "image: c")
	require.Contains(t, out, `published: "80"`)
	require.NotContains(t, out, "littoral", "it is named by whoever runs it")
	require.NotContains(t, out, "networks:", "a network of a fixed name would be shared with other projects")
}

// TestTheDefaultNetworkNeedNotBeDeclared: a service that is in others too has to name it.
func TestTheDefaultNetworkNeedNotBeDeclared(t *testing.T) {
	t.Parallel()
	for _, networks := range []string{"[default, back]", "{default: {aliases: [shop]}, back: {}}"} {
		out := text(t, load(t, "services: {web: {image: a, networks: "+networks+"}}\nnetworks: {back: {internal: true}}"))
		require.Contains(t, out, "networks:\n  back:\n    internal: true\n  default: {}\n")
	}
	out := text(t, load(t, "services: {web: {image: a, networks: [default]}}\nnetworks: {default: {driver: macvlan}}"))
	require.Contains(t, out, "driver: macvlan", "it may be")
}

func TestVariablesHaveTheValuesThatAreGiven(t *testing.T) {
	t.Parallel()
	const file = "services: {web: {image: 'web:${TAG}', command: 'echo $$HOME ${LEVEL:-info}'}}\n"
	out := text(t, load(t, file+"x-littoral: {variables: {TAG: '7'}}\n"))
	require.Contains(t, out, "image: web:7")
	require.Contains(t, out, "$$HOME", "it stays a dollar for whoever runs it")
	require.Contains(t, out, "info")
	require.NotContains(t, out, "x-littoral")
}

func TestProfilesAreChosen(t *testing.T) {
	t.Parallel()
	const file = "services: {web: {image: a}, debug: {image: b, profiles: [debug]}}\n"
	names, _ := load(t, file).Services()
	require.Equal(t, []string{"web"}, names)
	names, _ = load(t, file+"x-littoral: {profiles: [debug]}\n").Services()
	require.Equal(t, []string{"debug", "web"}, names)
	_, err := compose.Load(t.Context(), files([]string{"services: {debug: {image: b, profiles: [debug]}}"}))
	require.ErrorContains(t, err, "no service is left")
}

func TestDevicesAreMapped(t *testing.T) {
	t.Parallel()
	p := load(t, "services: {web: {image: a}, own: {image: b, devices: ['/dev/x:/dev/y']}}")
	require.NoError(t, p.Attach([]string{"/dev/video0", "usb", "gpu"}))
	out := text(t, p)
	require.Contains(t, out, "source: /dev/video0")
	require.Contains(t, out, "source: /dev/bus/usb")
	require.Contains(t, out, "- gpu")
	require.Contains(t, out, "target: /dev/y")
	require.ErrorContains(t, p.Attach([]string{"camera"}), `device "camera" is no path`)
}

func TestScaling(t *testing.T) {
	t.Parallel()
	p := load(t, "services: {web: {image: a, deploy: {replicas: 2, resources: {limits: {cpus: '0.5'}}}}, off: {image: b, scale: 0}}")
	p.Scale(func(n int64) int64 { return n + 1 })
	_, replicas := p.Services()
	require.Equal(t, map[string]int64{"web": 3, "off": 0}, replicas)
	p.Reserve(func(cpu, memory int64) (int64, int64) { return cpu + 1000, memory + 1<<20 })
	out := text(t, p)
	require.Contains(t, out, "cpus: 1", "and the limit is not below it")
	require.NotContains(t, out, "0.5")
}

// TestNothingIsReadOfTheMachine: the library would read files that a compose file names.
func TestNothingIsReadOfTheMachine(t *testing.T) {
	t.Parallel()
	for _, file := range []string{
		"services: {web: {image: a, env_file: /etc/hostname}}",
		"services: {web: {image: a, label_file: /etc/hostname}}",
		"services: {web: {extends: {file: /etc/hostname, service: x}}}",
		"include: [/etc/hostname]\nservices: {web: {image: a}}",
	} {
		_, err := compose.Load(t.Context(), files([]string{file}))
		require.ErrorContains(t, err, "names a file, and none travels with it", file)
	}
}
