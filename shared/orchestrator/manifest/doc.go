// Package manifest makes the Kubernetes objects of a job, and decides what errors of an API server mean for it and when
// its objects count as running. It does no I/O.
package manifest
