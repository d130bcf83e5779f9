// Package render makes PromQL from a policy, by syntax tree and never by text substitution.
//
// Prometheus' own parser parses an expression once, with a sentinel for each placeholder. In the tree each sentinel is
// replaced by a literal: a number, a duration, a label value, the matchers of the subject, names of labels. The tree is
// printed, parsed again and compared. So Prometheus evaluates exactly the expression that was written, with other
// literals, and every selector that its author bound to the subject still has the subject's matchers. A value of the
// wrong kind for its place is Invalid, with the path.
//
// Foreign finds the selectors of an expression that match series of other tenants.
//
// Only this package and those that import it contain the parser. The model of a policy is in shared/policy/registry,
// the texts of the templates are in shared/policy/template.
package render
