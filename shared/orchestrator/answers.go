package orchestrator

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/littoral-project/littoral/shared/problem"
)

// Silent reports whether the error means that nobody answers, rather than that somebody says no.
func Silent(err error) bool {
	var network net.Error
	var status apierrors.APIStatus
	switch {
	case err == nil, errors.As(err, &status):
		return false
	}
	return errors.As(err, &network) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) ||
		strings.Contains(err.Error(), "connection reset") ||
		strings.Contains(err.Error(), "EOF")
}

// Failing reports whether the API server, or whatever stands before it, says that it cannot answer now: to a look that
// is silence as well. A write is tried again first, since that is often over soon.
func Failing(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code >= http.StatusInternalServerError
}

// misfit reports whether the API server could not fit what was applied into its schema: a field that it does not know, one
// of another type, two entries of a list with one key. It answers that with 500 (kubernetes/kubernetes#139253).
func misfit(err error) bool {
	return Failing(err) && strings.Contains(err.Error(), "failed to create typed patch object")
}

// Classify gives an error of an API server about what, the meaning that it has for a job: a Refusal for a no that a
// repeat would not change, else Unavailable.
func Classify(err error, what string) error {
	var refusal *Refusal
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.As(err, &certificate):
		return &Refusal{Reason: "BadCertificate", Message: certificate.Error(), Err: err}
	case err == nil, errors.As(err, &refusal), errors.Is(err, ErrFenced),
		errors.Is(err, ErrLeaving), errors.Is(err, ErrSilent):
		return err
	case Silent(err):
		return fmt.Errorf("%w: %v", ErrSilent, err) //nolint:errorlint // the cause is for people only
	case misfit(err):
		return &Refusal{Reason: ReasonBadManifest, Message: what + ": " + err.Error(), Err: err}
	case apierrors.HasStatusCause(err, "NamespaceTerminating"):
		return fmt.Errorf("%w: %v", ErrLeaving, err) //nolint:errorlint // the same
	case apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict):
		return &Refusal{Reason: ReasonApplyConflict, Message: what + ": " + err.Error(), Err: err}
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsNotFound(err),
		apierrors.IsMethodNotSupported(err), apierrors.IsRequestEntityTooLargeError(err), apierrors.IsUnauthorized(err),
		apierrors.IsNotAcceptable(err), apierrors.IsUnsupportedMediaType(err):
		reason := string(apierrors.ReasonForError(err))
		if strings.Contains(err.Error(), "exceeded quota") {
			reason = "QuotaExceeded"
		}
		return &Refusal{Reason: reason, Message: what + ": " + err.Error(), Err: err}
	}
	return problem.Wrap(problem.Unavailable, err, "the API server does not take %s now; try again", what)
}
