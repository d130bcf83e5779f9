package contracts_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWhatIsDerivedIsNamed: requirements that follow from a compose file are used, and are told to who asks before it is handed in.
func TestWhatIsDerivedIsNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const document = `name: shop
components:
  - name: web
    type: docker
    manifests:
      - name: web
        manifest: {services: {web: {image: "web:1", deploy: {replicas: 2, resources: {reservations: {cpus: "0.25", memory: 64M}}}}}}
`
	const cpu = "components[0].requirements.cpu (line 7): is 500m, as the services of its compose file ask for in deploy.resources"
	for _, path := range []string{"/matchmaker/plan", "/matchmaker/explain"} {
		answer := decode[struct {
			Derived []string `json:"derived"`
		}](t, w.operator.call(t, http.MethodPost, path, document).is(t, http.StatusOK))
		require.Len(t, answer.Derived, 2, path)
		require.Equal(t, cpu, answer.Derived[0], path)
		require.Contains(t, answer.Derived[1], "components[0].requirements.memory", path)
	}
}
