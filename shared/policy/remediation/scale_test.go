package remediation

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/job"
)

// TestMeant: with the setting, the words have their conventional meaning; names of other remediations are not affected.
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
