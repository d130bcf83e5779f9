package function

import "time"

// Class says what a function works on, and so what it may have.
type Class string

// The classes. One that is missing here is added to the table below, rather than a limit to a function.
const (
	Small   Class = ""        // some rows of the store
	Remote  Class = "remote"  // some rows, and somebody else's server that may take its time
	Medium  Class = "medium"  // a page of objects, which are in memory several times, or the parser of PromQL
	Large   Class = "large"   // ten thousand nodes and the problem they make, or as many alerts
	Batch   Class = "batch"   // all that there is of something
	Series  Class = "series"  // the series of a range of time, or of all nodes
	RPC     Class = "rpc"     // as Large, over gRPC, whose library is a third of a small function
	Compose Class = "compose" // compose files, whose library takes its part of memory as soon as it is linked

	// Descriptor is what takes in or weighs a descriptor, which may hold compose files, with the parser of PromQL for its policies.
	Descriptor Class = "descriptor"
)

// Limits are what a function may have. Knative stops what takes more memory, the function itself a call that takes longer;
// test/budget holds its image, and what it has in memory before there is anything to do.
type Limits struct {
	Memory  string        // as a Kubernetes quantity
	Timeout time.Duration // of one call
	Image   float64       // MB, compressed, with what all images stand on
	Started float64       // MiB just after the first answer with a read of Postgres
}

var classes = map[Class]Limits{
	Small:   {Memory: "64Mi", Timeout: DefaultTimeout, Image: 6, Started: 16},
	Remote:  {Memory: "64Mi", Timeout: 30 * time.Second, Image: 6, Started: 16},
	Medium:  {Memory: "128Mi", Timeout: DefaultTimeout, Image: 6, Started: 16},
	Large:   {Memory: "128Mi", Timeout: 30 * time.Second, Image: 6, Started: 16},
	Batch:   {Memory: "128Mi", Timeout: time.Minute, Image: 6, Started: 16},
	Series:  {Memory: "256Mi", Timeout: time.Minute, Image: 6, Started: 16},
	RPC:     {Memory: "128Mi", Timeout: 30 * time.Second, Image: 8, Started: 20},
	Compose: {Memory: "128Mi", Timeout: 30 * time.Second, Image: 6, Started: 20},

	// The library of compose files beside the solver or the parser of PromQL makes four of these larger than the 6 MB of others.
	Descriptor: {Memory: "128Mi", Timeout: 30 * time.Second, Image: 6.5, Started: 20},
}

// clusterClient is what the client of the Kubernetes API adds to what a function has in memory when it has started, in MiB.
const clusterClient = 12

// Limits are those of its class, but for a function that has a Timeout of its own, streams or speaks with a cluster.
func (s Spec) Limits() Limits {
	l := classes[s.Class]
	switch {
	case s.Streams():
		l.Timeout = s.Stream.For
	case s.Timeout > 0:
		l.Timeout = s.Timeout
	}
	if s.Kubernetes {
		l.Started += clusterClient
	}
	return l
}
