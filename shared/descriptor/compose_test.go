package descriptor_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/descriptor"
	"github.com/littoral-project/littoral/shared/problem"
)

// composed returns a docker component with the requirements and the services.
func composed(need, services string) []byte {
	return []byte("components:\n- name: web\n  type: docker\n  requirements: {" + need + "}\n  manifests:\n  - name: c\n    manifest:\n" +
		"      services:\n" + services)
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
	for name, parse := range map[string]func([]byte) (*descriptor.Application, error){
		"of a submission": descriptor.Parse, "of a stored one": descriptor.ParseStored, "of a question": descriptor.ParseHeader,
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

func TestNothingIsDerivedFromWhatOnlyTheEngineKnows(t *testing.T) {
	t.Parallel()
	app, err := descriptor.Parse(composed("", "        a: {image: x, deploy: {resources: {limits: {memory: '${MEMORY:-1g}'}}}}\n"))
	require.NoError(t, err)
	require.Zero(t, app.Components[0].Requirements.MemoryBytes)
	require.Empty(t, app.Derived)
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
		_, err := descriptor.Parse(doc)
		requireFaults(t, err, []string{fault})
		_, err = descriptor.ParseStored(doc)
		require.NoError(t, err, "it was accepted before there was this rule")
	}
}
