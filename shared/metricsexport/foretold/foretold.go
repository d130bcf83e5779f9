// Package foretold has the names under which metrics export publishes what models foresee of a query, so that policies find it by the
// query.
package foretold

const (
	// Metric is the last value that a model foresees of a series, while it beats the naive kinds there.
	Metric = "littoral_foretold"
	// Seconds is how far ahead that is.
	Seconds = "littoral_foretold_seconds"

	// Query is the label with the query; the other labels are those of its series.
	Query = "foretold_query"
	// By is the label with the metric that was asked for.
	By = "foretold_by"

	// MostQuery is how long a query that is published may be.
	MostQuery = 1000
)
