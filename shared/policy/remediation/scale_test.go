package remediation

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/job"
)

// TestMeant: by the setting, the words mean what they mean elsewhere; what is no scaling means the same either way.
func TestMeant(t *testing.T) {
	t.Parallel()
	for asked, conventional := range map[job.Remediation]job.Remediation{
		job.ScaleOut: job.ScaleUp, job.ScaleIn: job.ScaleDown, job.ScaleUp: job.ScaleOut, job.ScaleDown: job.ScaleIn,
		job.Patch: job.Patch, job.Secure: job.Secure, job.Reallocate: job.Reallocate, job.NoRemediation: job.NoRemediation,
	} {
		require.Equal(t, asked, Settings{}.meant(asked))
		require.Equal(t, conventional, Settings{Conventional: true}.meant(asked), asked)
	}
}
