// Package pb has the messages of the solver's interface; "make generate" makes them of solver.proto.
package pb
