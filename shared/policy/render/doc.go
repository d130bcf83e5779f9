// Package render makes PromQL of a policy, by syntax tree and never by text.
//
// An expression with placeholders is parsed once with a sentinel for each of them, by Prometheus' own parser. In the
// tree each sentinel is replaced by a literal: a number, a duration, a label value, the matchers of the subject,
// names of labels. The tree is printed, parsed again and compared, so that what Prometheus will evaluate is the
// expression that was written, with other literals and nothing else; and every selector that the writer bound to the
// subject carries the subject's matchers still. A value that is not of the kind its place wants is Invalid, with the
// path.
//
// Foreign finds the selectors of an expression that reach into other tenants' series.
//
// This package and what imports it carry the parser. The model of a policy is in shared/policy/registry, the texts of
// the templates are in shared/policy/template.
package render
