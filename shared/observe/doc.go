// Package observe reports to an OpenTelemetry collector what functions do: a span for each call and each call that it
// makes, and metrics.
//
// It pushes OTLP over HTTP with JSON bodies (https://opentelemetry.io/docs/specs/otlp/), in the background and shortly
// after each call, since an instance may be gone a minute later. A collector that is slow, away or wrong costs spans
// and never a request. It is small on purpose: measured on jobmanager-job-promote, the OpenTelemetry SDK with its two
// exporters brings the compressed image from 4.84 MB to 7.74, the resident set at rest from 10.1 MiB to 16.0 and the
// start from 3.8 ms to 5.6; this package, 4.92 MB and no measurable difference in the others.
//
// What a newcomer gets wrong: every method works on a nil Exporter or Recorder, which is what there is without a
// collector.
package observe
