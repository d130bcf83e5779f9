package compose_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/compose"
	"github.com/littoral-project/littoral/shared/descriptor"
)

// agreed are compose files that both the descriptor and the deployers read: the one to place a component, the others to run it.
var agreed = []string{
	"services: {a: {image: x}}",
	"services: {a: {image: x, deploy: {replicas: 3, resources: {reservations: {cpus: '0.5', memory: 200M}}}}}",
	"services: {a: {image: x, deploy: {resources: {limits: {cpus: '1.5', memory: 1gb}}}}}",
	"services: {a: {image: x, deploy: {resources: {reservations: {cpus: '0.25'}, limits: {cpus: '1', memory: 64MiB}}}}}",
	"services: {a: {image: x, deploy: {replicas: 0, resources: {reservations: {memory: 1g}}}}, b: {image: y, deploy: {resources: {limits: {memory: '1024'}}}}}",
	"services: {a: {image: x, deploy: {resources: {limits: {memory: 100kb}}}}, b: {image: y, profiles: [p], deploy: {resources: {limits: {memory: 1g}}}}}",
	"services: {a: {image: x}, b: {image: y, profiles: [p, q], deploy: {resources: {limits: {memory: 1g}}}}}\nx-littoral: {profiles: [q]}",
	"services: {a: {image: x}, b: {image: y, profiles: [p], deploy: {resources: {limits: {memory: 1g}}}}}\nx-littoral: {profiles: ['*']}",
	"services: {a: {image: x}, b: {image: y, profiles: [p], deploy: {resources: {limits: {memory: 1g}}}}}\nx-littoral: {profiles: [other]}",
	"services: {a: {image: 'x:${TAG:-1}', deploy: {replicas: '${N}', resources: {limits: {memory: '${M:-50m}'}}}}}\nx-littoral: {variables: {N: '4'}}",
	"services: {a: {image: x, deploy: {replicas: '${N-2}', resources: {limits: {cpus: '${C:+0.5}', memory: '${M:-${L}m}'}}}}}\nx-littoral: {variables: {L: '7', C: x}}",
	"services: {a: {image: x, command: 'echo $$HOME $5', deploy: {resources: {limits: {memory: 1g}}}}}",
	"services: {a: {image: 'x:${TAG?must be set}', deploy: {resources: {limits: {memory: 1g}}}}}\nx-littoral: {variables: {TAG: '1'}}",
}

// neither are files that both refuse.
var neither = []string{
	"services: {a: {image: 'x:${TAG'}}",
	"services: {a: {image: 'x:${}'}}",
	"services: {a: {image: 'x:${TAG?must be set}'}}",
	"services: {a: {image: x, deploy: {replicas: '${N:-some}'}}}",
	"services: {a: {image: x, deploy: {resources: {limits: {memory: lots}}}}}",
	"services: {a: {image: x, deploy: {resources: {limits: {memory: 1024}}}}}",
	"services: {a: {image: x, env_file: a}}",
	"include: [a.yaml]\nservices: {a: {image: x}}",
}

func document(file string) []byte {
	return []byte("components:\n- name: web\n  type: docker\n  manifests:\n  - name: c\n    manifest:\n      " +
		strings.ReplaceAll(file, "\n", "\n      ") + "\n")
}

// TestTheDescriptorReadsAComposeFileAsTheDeployersDo: what a component is placed for is what its services then ask for. The
// library of the specification would make the functions that read descriptors too big, so there are two readers; variables
// are put in by one piece of code for both.
func TestTheDescriptorReadsAComposeFileAsTheDeployersDo(t *testing.T) {
	t.Parallel()
	for _, file := range agreed {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			app, err := descriptor.Parse(document(file))
			require.NoError(t, err)
			p, err := compose.Load(t.Context(), files([]string{file}))
			require.NoError(t, err)
			var cpu float64
			var memory int64
			for _, s := range p.Of().Services {
				if s.Deploy == nil {
					continue
				}
				of, times := s.Deploy.Resources, int64(s.GetScale())
				var cores float32
				var bytes int64
				if of.Limits != nil {
					cores, bytes = float32(of.Limits.NanoCPUs), int64(of.Limits.MemoryBytes)
				}
				if of.Reservations != nil {
					if of.Reservations.NanoCPUs > 0 {
						cores = float32(of.Reservations.NanoCPUs)
					}
					if of.Reservations.MemoryBytes > 0 {
						bytes = int64(of.Reservations.MemoryBytes)
					}
				}
				cpu += float64(cores) * float64(times)
				memory += bytes * times
			}
			need := app.Components[0].Requirements
			require.InDelta(t, cpu*1000, float64(need.CPUMilli), 0.5)
			require.Equal(t, memory, need.MemoryBytes)
		})
	}
	for _, file := range neither {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			_, err := descriptor.Parse(document(file))
			require.Error(t, err)
			_, err = compose.Load(t.Context(), files([]string{file}))
			require.Error(t, err)
		})
	}
}
