package compose_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/compose"
)

// TestWhatServicesAskFor: what a component is placed for is what its services then ask for.
func TestWhatServicesAskFor(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	for file, want := range map[string][2]int64{
		"services: {a: {image: x}}": {0, 0},
		"services: {a: {image: x, deploy: {replicas: 3, resources: {reservations: {cpus: '0.5', memory: 200M}}}}}":                                                          {1500, 600 * mib},
		"services: {a: {image: x, deploy: {resources: {limits: {cpus: '1.5', memory: 1gb}}}}}":                                                                              {1500, 1024 * mib},
		"services: {a: {image: x, deploy: {resources: {reservations: {cpus: '0.1'}, limits: {cpus: '1', memory: 64MiB}}}}}":                                                 {100, 64 * mib},
		"services: {a: {image: x, deploy: {replicas: 0, resources: {reservations: {memory: 1g}}}}, b: {image: y, deploy: {resources: {limits: {memory: '1024'}}}}}":         {0, 1024},
		"services: {a: {image: x, scale: 2, deploy: {resources: {limits: {memory: 1g}}}}}":                                                                                  {0, 2048 * mib},
		"services: {a: {image: x}, b: {image: y, profiles: [p, q], deploy: {resources: {limits: {memory: 1g}}}}}\nx-littoral: {profiles: [q]}":                              {0, 1024 * mib},
		"services: {a: {image: x}, b: {image: y, profiles: [p], deploy: {resources: {limits: {memory: 1g}}}}}\nx-littoral: {profiles: ['*']}":                               {0, 1024 * mib},
		"services: {a: {image: x}, b: {image: y, profiles: [p], deploy: {resources: {limits: {memory: 1g}}}}}\nx-littoral: {profiles: [other]}":                             {0, 0},
		"services: {a: {image: x, deploy: {replicas: '${N}', resources: {limits: {memory: '${M:-50m}'}}}}}\nx-littoral: {variables: {N: 4}}":                                {0, 200 * mib},
		"services: {a: {image: x, deploy: {replicas: '${N-2}', resources: {limits: {cpus: '${C:+0.5}', memory: '${M:-${L}m}'}}}}}\nx-littoral: {variables: {L: '7', C: x}}": {1000, 14 * mib},
		"services: {a: {image: x, extends: {service: b}}, b: {image: y, deploy: {resources: {limits: {memory: 1m}}}}}":                                                      {0, 2 * mib},
	} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			c := compose.Read(files([]string{file}))
			require.Empty(t, c.Faults)
			require.Equal(t, want, [2]int64{c.CPUMilli.Amount, c.Memory.Amount})
			load(t, file)
		})
	}
}

// TestALaterFileCounts: a component's files are merged, and each finding names the file that it is in.
func TestALaterFileCounts(t *testing.T) {
	t.Parallel()
	c := compose.Read(files([]string{
		"services: {a: {image: x, privileged: true, deploy: {resources: {limits: {memory: 1g}}}}}",
		"services: {a: {volumes: ['/etc:/etc'], deploy: {resources: {limits: {memory: 2g}}}}}",
	}))
	require.Empty(t, c.Faults)
	require.Equal(t, int64(2<<30), c.Memory.Amount)
	require.Equal(t, 1, c.Memory.At[0].File)
	require.Len(t, c.HostAccess, 2)
	require.Zero(t, c.HostAccess[0].File)
	require.Equal(t, 1, c.HostAccess[1].File)
	require.Equal(t, []string{"services", "a", "volumes", "0"}, c.HostAccess[1].Keys)
}

// TestFormsOfVariables: those of the specification, of which only one without a value of its own has to be given.
func TestFormsOfVariables(t *testing.T) {
	t.Parallel()
	const given = "x-littoral: {variables: {A: one, B: '2', EMPTY: ''}}"
	for text, missing := range map[string]string{
		"plain $$A $5 100$ $$$$": "", "$A ${A} ${B}": "", "${EMPTY}": "",
		"${NONE:-d} ${NONE-} ${EMPTY:-d} ${NONE:+p} ${NONE+p}": "",
		"${NONE:-${A}} ${NONE:-x${EMPTY:-${B}}y}":              "",
		"${A:-${NONE}} ${A+x}":                                 "",
		"$NONE":                                                "NONE", "a ${NONE} b": "NONE", "${A} ${NONE}": "NONE", "${NONE:-${OTHER}}": "OTHER", "$A$NONE_1": "NONE_1",
		"${NONE:?say} ": "NONE", "${EMPTY:?say}": "EMPTY", "$$NONE ${NONE}": "NONE",
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			c := compose.Read(files([]string{"services: {a: {image: x, command: '" + text + "'}}\n" + given}))
			if missing == "" {
				require.Empty(t, c.Faults)
				return
			}
			require.Len(t, c.Faults, 1)
			require.Contains(t, c.Faults[0].Detail, `the variable "`+missing+`" has no value`)
			require.Equal(t, "services.a.command", strings.Join(c.Faults[0].Keys, "."))
		})
	}
	for _, text := range []string{"${", "${}", "${A", "${A B}"} {
		c := compose.Read(files([]string{"services: {a: {image: x, command: '" + text + "'}}\n" + given}))
		require.Len(t, c.Faults, 1, text)
		require.Contains(t, c.Faults[0].Detail, "no form of a variable")
	}
}

// TestAKeyThatComposeDoesNotHaveIsLeftOut, also where the file is run: the library would refuse it as a whole.
func TestAKeyThatComposeDoesNotHaveIsLeftOut(t *testing.T) {
	t.Parallel()
	const file = "services: {a: {image: x, prots: [80], labels: {a.b: c}, deploy: {labels: {d.e: f}}}}\nvolums: {}\nx-mine: {y: z}\n"
	require.NotContains(t, text(t, load(t, file)), "prots")
	c := compose.Read(files([]string{file}))
	require.Empty(t, c.Faults)
	require.Len(t, c.Warnings, 2)
}
