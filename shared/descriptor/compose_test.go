package descriptor_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/appmodel"
	"github.com/littoral-project/littoral/shared/compose"
	"github.com/littoral-project/littoral/shared/descriptor"
	"github.com/littoral-project/littoral/shared/problem"
)

// composed returns a docker component with the requirements and the services.
func composed(need, services string) []byte {
	return []byte("components:\n- name: web\n  type: docker\n  requirements: {" + need + "}\n  manifests:\n  - name: c\n    manifest:\n" +
		"      services:\n" + services)
}

func submitted(doc []byte) (*appmodel.Application, error) { return descriptor.Parse(doc, compose.Read) }

func asked(doc []byte) (*appmodel.Application, error) {
	return descriptor.ParseHeader(doc, compose.Read)
}

const twoServices = `        front:
          image: a
          deploy: {replicas: 2, resources: {reservations: {cpus: '0.5', memory: 200M}, limits: {memory: 1g}}}
        cache:
          image: b
          deploy: {resources: {limits: {cpus: 0.25, memory: 64MiB}}}
        plain: {image: c}
`

func TestRequirementsThatAreLeftOutAreDerivedFromTheComposeFile(t *testing.T) {
	t.Parallel()
	for name, parse := range map[string]func([]byte) (*appmodel.Application, error){
		"of a submission": submitted, "of a question": asked,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			app, err := parse(composed("", twoServices))
			require.NoError(t, err)
			require.Equal(t, int64(1250), app.Components[0].Requirements.CPUMilli)
			require.Equal(t, int64(464<<20), app.Components[0].Requirements.MemoryBytes)
			require.Equal(t, []string{
				"components[0].requirements.cpu (line 11): is 1250m, as the services of its compose file ask for in deploy.resources",
				"components[0].requirements.memory (line 11): is 486539264 bytes, as the services of its compose file ask for in deploy.resources",
			}, problem.Texts(app.Derived))

			app, err = parse(composed("cpu: 2", twoServices))
			require.NoError(t, err)
			require.Equal(t, int64(2000), app.Components[0].Requirements.CPUMilli, "what is written counts")
			require.Len(t, app.Derived, 1)
		})
	}
}

func TestVariablesOfAmountsHaveTheirValues(t *testing.T) {
	t.Parallel()
	const file = "        a: {image: x, deploy: {replicas: '${N:-2}', resources: {limits: {memory: '${MEMORY:-1g}'}}}}\n"
	app, err := submitted(composed("", file))
	require.NoError(t, err)
	require.Equal(t, int64(2<<30), app.Components[0].Requirements.MemoryBytes)
	app, err = submitted(composed("", file+"      x-littoral: {variables: {N: 3, MEMORY: 100M}}\n"))
	require.NoError(t, err)
	require.Equal(t, int64(300<<20), app.Components[0].Requirements.MemoryBytes)
	app, err = descriptor.ParseStored(composed("", "        a: {image: x, deploy: {resources: {limits: {memory: '${MEMORY}'}}}}\n"))
	require.NoError(t, err, "it was accepted before there was this rule")
	require.Empty(t, app.Derived)
	app.Derive(appmodel.ComposeNeeds{Component: "web", MemoryBytes: 1 << 30, MemoryLine: 9})
	require.Equal(t, int64(1<<30), app.Components[0].Requirements.MemoryBytes, "what was read of it then is stored with it")
	require.Len(t, app.Derived, 1)
}

func TestAComposeFileIsRefusedWhereNobodyReadsIt(t *testing.T) {
	t.Parallel()
	doc := composed("", "        a: {image: x}\n")
	_, err := descriptor.Parse(doc, nil)
	requireFaults(t, err, []string{"components[0].manifests[0].manifest (line 8): is a compose file"})
	_, err = descriptor.ParseHeader(doc, nil)
	require.NoError(t, err)
}

func TestAllFaultsOfAComposeFileAreSaid(t *testing.T) {
	t.Parallel()
	const in = "components[0].manifests[0].manifest.services."
	_, err := submitted(composed("", `        a: {image: [x], ports: 80, shm_size: 1g}
        my.b:
          image: x
          ports: [{target: 80}, "80:x:y"]
          volumes: ["data::/b"]
          healthcheck: {retries: [1]}
`))
	requireFaults(t, err, []string{
		in + "a.image (line 9): must be a text, not a list",
		in + "a.ports (line 9): must be a list, not a number",
		in + "my.b.ports[1] (line 12): ",
		in + "my.b.volumes[0] (line 13): ",
		in + "my.b.healthcheck.retries (line 14): must be a number or a text, not a list",
	})
	for service, fault := range map[string]string{
		"{image: x, networks: [q]}":         in + `a (line 9): service "a" refers to undefined network q`,
		"{image: x, depends_on: [q]}":       in + `a (line 9): service "a" depends on undefined service "q"`,
		"{image: x, shm_size: lots}":        in + "a.shm_size (line 9): invalid size: 'lots'",
		"{image: x, privileged: maybe}":     in + "a.privileged (line 9): failed to cast to expected type: invalid boolean: maybe",
		"{ports: ['80:80']}":                in + `a (line 9): service "a" has neither an image nor a build context specified`,
		"{image: x, extends: {service: z}}": in + `a (line 9): cannot extend service "a" in c: service "z" not found`,
	} {
		_, err := submitted(composed("", "        a: "+service+"\n"))
		requireFaults(t, err, []string{fault})
	}
}

func TestAmountsOfAComposeFileThatCannotBeReadAreRefused(t *testing.T) {
	t.Parallel()
	const in = "components[0].manifests[0].manifest.services.a.deploy."
	for amounts, fault := range map[string]string{
		"resources: {limits: {memory: lots}}":      in + `resources.limits.memory (line 9): "lots" is no amount of memory`,
		"resources: {reservations: {cpus: 500m}}":  in + `resources.reservations.cpus (line 9): "500m" is no number of cores`,
		"replicas: some":                           in + "replicas (line 9): must be a whole number",
		"resources: {limits: {memory: [1g]}}":      in + "resources.limits.memory (line 9): must be an amount, not a list",
		"resources: {limits: {memory: 2000000pb}}": in + `resources.limits.memory (line 9): "2000000pb" is more than an exbibyte`,
	} {
		doc := composed("", "        a: {image: x, deploy: {"+amounts+"}}\n")
		_, err := submitted(doc)
		requireFaults(t, err, []string{fault})
		_, err = descriptor.ParseStored(doc)
		require.NoError(t, err, "it was accepted before there was this rule")
	}
}

func TestAComposeFileThatNeedsWhatDoesNotTravelIsRefused(t *testing.T) {
	t.Parallel()
	const in = "components[0].manifests[0].manifest.services.a"
	for service, fault := range map[string]string{
		"{image: 'x:${TAG}'}":                             in + `.image (line 9): the variable "TAG" has no value`,
		"{image: x, command: [echo, $HOME]}":              in + `.command[1] (line 9): the variable "HOME" has no value`,
		"{image: x, env_file: .env}":                      in + ".env_file (line 9): names a file",
		"{image: x, extends: {service: b, file: o.yaml}}": in + ".extends.file (line 9): names a file",
		"{build: .}":                            in + ".build (line 9): cannot be built where it runs",
		"{image: x, command: '$$HOME ${A:?x}'}": in + `.command (line 9): the variable "A" has no value`,
	} {
		doc := composed("", "        a: "+service+"\n")
		_, err := submitted(doc)
		requireFaults(t, err, []string{fault})
		_, err = descriptor.ParseStored(doc)
		require.NoError(t, err, "it was accepted before there was this rule")
	}
	_, err := submitted(composed("", "        a: {image: 'x:${TAG:-1}', command: 'echo $$HOME ${B-}', restart: always}\n"))
	require.NoError(t, err)
}

func TestVariablesAndProfilesThatAComposeFileIsGiven(t *testing.T) {
	t.Parallel()
	const services = "        a: {image: 'x:${TAG}', deploy: {resources: {limits: {cpus: 1}}}}\n" +
		"        b: {image: y, profiles: [debug], deploy: {resources: {limits: {cpus: 2}}}}\n"
	app, err := submitted(composed("", services+"      x-littoral: {variables: {TAG: '7'}}\n"))
	require.NoError(t, err)
	require.Equal(t, int64(1000), app.Components[0].Requirements.CPUMilli, "b does not run")
	app, err = submitted(composed("", services+"      x-littoral: {variables: {TAG: '7'}, profiles: [debug]}\n"))
	require.NoError(t, err)
	require.Equal(t, int64(3000), app.Components[0].Requirements.CPUMilli)
	_, err = submitted(composed("", services+"      x-littoral: {variables: {TAG: }}\n"))
	requireFaults(t, err, []string{`components[0].manifests[0].manifest.services.a.image (line 9): the variable "TAG" has no value`})
}

func TestAKeyThatComposeDoesNotHaveIsWarnedOf(t *testing.T) {
	t.Parallel()
	app, err := submitted(composed("", "        a: {image: x, prots: [80], x-own: 1, deploy: {moode: x}, labels: {a.b: c}, logging: {options: {any: x}}}\n"))
	require.NoError(t, err)
	requireLines(t, []string{
		"components[0].manifests[0].manifest.services.a.deploy.moode (line 9): is no key that compose has here",
		"components[0].manifests[0].manifest.services.a.prots (line 9): is no key that compose has here",
	}, problem.Texts(app.Warnings))
}

func TestWhatAComposeFileWouldGetOfItsHostIsListed(t *testing.T) {
	t.Parallel()
	app, err := submitted(composed("", `        a:
          image: x
          privileged: true
          network_mode: host
          volumes: ["data:/data", "/var/run/docker.sock:/s", {type: bind, source: ./here, target: /h}, /anonymous]
        b: {image: y, privileged: false, network_mode: bridge, volumes: [{type: volume, source: data, target: /d}]}
      volumes: {data: {}}
`))
	require.NoError(t, err)
	const in = "components[0].manifests[0].manifest.services.a."
	require.Equal(t, []string{
		in + "privileged (line 11): takes rights beyond those of a container",
		in + "network_mode (line 12): shares the host's own",
		in + "volumes[1] (line 13): mounts /var/run/docker.sock of the host",
		in + "volumes[2] (line 13): mounts ./here of the host",
	}, problem.Texts(app.HostAccess))

	app, err = submitted(composed("", `        a:
          image: x
          network_mode: "${MODE:-host}"
          volumes: ["${SOCKET:-/var/run/docker.sock}:/s", "data:/data"]
          pid: "container:other"
      volumes: {data: {driver_opts: {type: none, o: bind, device: /etc}}}
`))
	require.NoError(t, err)
	require.Equal(t, []string{
		in + "network_mode (line 11): shares the host's own",
		in + "volumes[0] (line 12): mounts /var/run/docker.sock of the host",
		in + "volumes[1] (line 12): mounts /etc of the host",
		in + "pid (line 13): joins another container",
	}, problem.Texts(app.HostAccess), "with the values of variables, and through volumes with a name")
}
