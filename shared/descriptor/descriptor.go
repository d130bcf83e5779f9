// Package descriptor reads the application descriptor: it parses every generation of the format that is in use,
// validates it completely and returns the neutral model (package appmodel).
//
// It does no I/O and uses no clock. Parse is for a submission, where everything that a component names must be there;
// ParseStored is for what was accepted before; ParseHeader is for the matchmaker, which gets components without their
// manifests. All faults come back as one *problem.Error with the path and line of each; what is merely odd is in
// Warnings.
package descriptor
