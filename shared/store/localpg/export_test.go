package localpg

// StartedOn is for tests on a system that has a better way.
var StartedOn = startedOn
