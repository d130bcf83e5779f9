package manifest

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/littoral-project/littoral/shared/orchestrator"
	"github.com/littoral-project/littoral/shared/problem"
)

// Silent reports whether the error means that nobody answered, in contrast to an answer that says no.
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

// Failing reports whether the API server, or a proxy before it, says that it cannot answer now (a 5xx). Classify
// makes it orchestrator.ErrFailing.
func Failing(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code >= http.StatusInternalServerError
}

// final reports whether the answer is a no that a repeat would not change. A webhook may give any code below 500.
func final(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	switch code := status.Status().Code; code {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusGone, http.StatusTooManyRequests: // gone: a list that expired
		return false
	default:
		return code >= http.StatusBadRequest && code < http.StatusInternalServerError
	}
}

// OverQuota reports whether the message of an API server, or of an agent that repeats it, says that a quota is used up. The
// server gives no code of its own for that.
func OverQuota(message string) bool { return strings.Contains(message, "exceeded quota") }

// word matches the reasons of Kubernetes.
var word = regexp.MustCompile(`^[A-Za-z]+$`)

// misfit reports whether the API server could not fit the applied object into its schema: an unknown field, a value of
// the wrong type, two list entries with the same key. It answers that with 500 (kubernetes/kubernetes#139253).
func misfit(err error) bool {
	return Failing(err) && strings.Contains(err.Error(), "failed to create typed patch object")
}

// Classify turns an error of an API server into what it means for a job: a Refusal where repeating the call would not
// help, else Unavailable. what names the object or component in the message.
func Classify(err error, what string) error {
	var refusal *orchestrator.Refusal
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.As(err, &certificate):
		return &orchestrator.Refusal{Reason: "BadCertificate", Message: certificate.Error(), Err: err}
	case err == nil, errors.As(err, &refusal), errors.Is(err, orchestrator.ErrFenced),
		errors.Is(err, orchestrator.ErrLeaving), errors.Is(err, orchestrator.ErrSilent):
		return err
	case Silent(err):
		return fmt.Errorf("%w: %v", orchestrator.ErrSilent, err) //nolint:errorlint // the cause is for people only
	case misfit(err):
		return &orchestrator.Refusal{Reason: orchestrator.ReasonBadManifest, Message: what + ": " + err.Error(), Err: err}
	case apierrors.HasStatusCause(err, "NamespaceTerminating"):
		return fmt.Errorf("%w: %v", orchestrator.ErrLeaving, err) //nolint:errorlint // the cause is for people only
	case apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict):
		return &orchestrator.Refusal{Reason: orchestrator.ReasonApplyConflict, Message: what + ": " + err.Error(), Err: err}
	case final(err):
		reason := string(apierrors.ReasonForError(err))
		switch {
		case OverQuota(err.Error()):
			reason = orchestrator.ReasonQuotaExceeded
		case !word.MatchString(reason): // webhooks give none, or a sentence
			reason = orchestrator.ReasonDenied
		}
		return &orchestrator.Refusal{Reason: reason, Message: what + ": " + err.Error(), Err: err}
	}
	if Failing(err) {
		err = orchestrator.Failed(err)
	}
	return problem.Wrap(problem.Unavailable, err, "the API server does not take %s now; try again", what)
}
