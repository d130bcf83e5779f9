package alto_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/alto"
)

// known are the types of costs of the examples of RFC 7285 §11.
func known(t alto.CostType) (alto.CostType, bool) {
	t.Description = ""
	return t, t.Metric == "routingcost" || t.Metric == "hopcount"
}

func TestRequestsOfTheRFC(t *testing.T) {
	t.Parallel()
	m, fault := alto.ParseMapFilter([]byte(`{"pids": ["PID1", "PID2"]}`)) // §11.3.1.6
	require.Nil(t, fault)
	require.Equal(t, []string{"PID1", "PID2"}, m.PIDs)

	c, fault := alto.ParseCostFilter([]byte(`{
		"cost-type": {"cost-mode": "numerical", "cost-metric": "routingcost"},
		"pids": {"srcs": ["PID1"], "dsts": ["PID1", "PID2", "PID3"]}}`), known) // §11.3.2.6
	require.Nil(t, fault)
	require.Equal(t, []string{"PID1", "PID2", "PID3"}, c.Dsts)

	c, fault = alto.ParseEndpointCost([]byte(`{
		"cost-type": {"cost-mode": "ordinal", "cost-metric": "routingcost"},
		"endpoints": {"srcs": ["ipv4:192.0.2.2"], "dsts": ["ipv4:192.0.2.89", "ipv4:198.51.100.34", "ipv4:203.0.113.45"]}}`), known) // §11.5.1.7
	require.Nil(t, fault)
	require.Equal(t, alto.Ordinal, c.Types[0].Mode)
	require.Len(t, c.Dsts, 3)

	p, fault := alto.ParsePropertyRequest([]byte(`{"properties": ["my-default-networkmap.pid", "priv:ietf-example-prop"],
		"endpoints": ["ipv4:192.0.2.34", "ipv4:203.0.113.129"]}`), func(string) bool { return true }) // §11.4.1.7
	require.Nil(t, fault)
	require.Len(t, p.Properties, 2)
}

// TestAnswersOfTheRFC writes the cost maps of §11.2.3.6 and §11.5.1.7.
func TestAnswersOfTheRFC(t *testing.T) {
	t.Parallel()
	pids := []string{"PID1", "PID2", "PID3"}
	table := [][]float64{{1, 5, 10}, {5, 1, 15}, {20, 15, 0}}
	kind := alto.CostType{Mode: "numerical", Metric: "routingcost"}
	text, err := alto.AppendCosts(nil, "cost-map", alto.Meta{
		DependentVTags: []alto.VersionTag{{ResourceID: "my-default-network-map", Tag: "3ee2cb7e8d63d9fab71b9b34cbf764436315542e"}},
		CostType:       &kind,
	}, alto.Matrix{Sources: pids, Targets: pids, Cost: func(_, s, t int) (float64, bool) { return table[s][t], s != 2 || t != 2 }})
	require.NoError(t, err)
	require.JSONEq(t, `{
		"meta": {
			"dependent-vtags": [{"resource-id": "my-default-network-map", "tag": "3ee2cb7e8d63d9fab71b9b34cbf764436315542e"}],
			"cost-type": {"cost-mode": "numerical", "cost-metric": "routingcost"}},
		"cost-map": {
			"PID1": {"PID1": 1, "PID2": 5, "PID3": 10},
			"PID2": {"PID1": 5, "PID2": 1, "PID3": 15},
			"PID3": {"PID1": 20, "PID2": 15}}}`, string(text))

	kind.Mode = alto.Ordinal
	text, err = alto.AppendCosts(nil, "endpoint-cost-map", alto.Meta{CostType: &kind}, alto.Matrix{
		Sources: []string{"ipv4:192.0.2.2"}, Targets: []string{"ipv4:192.0.2.89", "ipv4:198.51.100.34", "ipv4:203.0.113.45"},
		Cost: func(_, _, t int) (float64, bool) { return float64(t + 1), true },
	})
	require.NoError(t, err)
	require.JSONEq(t, `{"meta": {"cost-type": {"cost-mode": "ordinal", "cost-metric": "routingcost"}},
		"endpoint-cost-map": {"ipv4:192.0.2.2": {"ipv4:192.0.2.89": 1, "ipv4:198.51.100.34": 2, "ipv4:203.0.113.45": 3}}}`, string(text))
}

// TestNetworkMapOfTheRFC writes the map of §11.2.1.6.
func TestNetworkMapOfTheRFC(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal(alto.NetworkMapDocument{
		Meta: alto.Meta{VTag: &alto.VersionTag{ResourceID: "my-default-network-map", Tag: "da65eca2eb7a10ce8b059740b0b2e3f8eb1d4785"}},
		NetworkMap: map[string]alto.Group{
			"PID1": {"ipv4": {"192.0.2.0/24", "198.51.100.0/25"}}, "PID2": {"ipv4": {"198.51.100.128/25"}},
			"PID3": {"ipv4": {"0.0.0.0/0"}, "ipv6": {"::/0"}},
		},
	})
	require.NoError(t, err)
	require.JSONEq(t, `{"meta": {"vtag": {"resource-id": "my-default-network-map", "tag": "da65eca2eb7a10ce8b059740b0b2e3f8eb1d4785"}},
		"network-map": {
			"PID1": {"ipv4": ["192.0.2.0/24", "198.51.100.0/25"]},
			"PID2": {"ipv4": ["198.51.100.128/25"]},
			"PID3": {"ipv4": ["0.0.0.0/0"], "ipv6": ["::/0"]}}}`, string(text))
}

// TestFaults: each of the four codes, with the path parents first.
func TestFaults(t *testing.T) {
	t.Parallel()
	cost := `"cost-type": {"cost-mode": "numerical", "cost-metric": "routingcost"}`
	for body, want := range map[string]alto.Error{
		`{`:                {Code: "E_SYNTAX"},
		``:                 {Code: "E_SYNTAX"},
		`[]`:               {Code: "E_SYNTAX"},
		`{"pids": {}}`:     {Code: "E_MISSING_FIELD", Field: "cost-type"},
		`{"cost-type": 5}`: {Code: "E_INVALID_FIELD_TYPE", Field: "cost-type"},
		`{"cost-type": {"cost-mode": "numerical"}}`:                         {Code: "E_MISSING_FIELD", Field: "cost-type/cost-metric"},
		`{"cost-type": {"cost-metric": "routingcost"}}`:                     {Code: "E_MISSING_FIELD", Field: "cost-type/cost-mode"},
		`{"cost-type": {"cost-metric": 1, "cost-mode": "numerical"}}`:       {Code: "E_INVALID_FIELD_TYPE", Field: "cost-type/cost-metric"},
		`{"cost-type": {"cost-mode": "x", "cost-metric": "routingcost"}}`:   {Code: "E_INVALID_FIELD_VALUE", Field: "cost-type/cost-mode", Value: "x"},
		`{"cost-type": {"cost-mode": "numerical", "cost-metric": "taste"}}`: {Code: "E_INVALID_FIELD_VALUE", Field: "cost-type/cost-metric", Value: "taste"},
		`{` + cost + `, "pids": []}`:                                        {Code: "E_INVALID_FIELD_TYPE", Field: "pids"},
		`{` + cost + `, "pids": {"srcs": "PID1"}}`:                          {Code: "E_INVALID_FIELD_TYPE", Field: "pids/srcs"},
		`{` + cost + `, "pids": {"srcs": [1]}}`:                             {Code: "E_INVALID_FIELD_VALUE", Field: "pids/srcs", Value: "1"},
		`{` + cost + `, "constraints": ["near 5"]}`:                         {Code: "E_INVALID_FIELD_VALUE", Field: "constraints", Value: "near 5"},
		`{` + cost + `, "constraints": ["[0] le 5"]}`:                       {Code: "E_INVALID_FIELD_VALUE", Field: "constraints", Value: "[0] le 5"},
		`{` + cost + `, "multi-cost-types": []}`:                            {Code: "E_INVALID_FIELD_VALUE", Field: "multi-cost-types", Value: "beside cost-type"},
		`{"multi-cost-types": []}`:                                          {Code: "E_INVALID_FIELD_VALUE", Field: "multi-cost-types", Value: "[]"},
		`{` + cost + `, "constraints": [], "or-constraints": []}`:           {Code: "E_INVALID_FIELD_VALUE", Field: "or-constraints", Value: "beside constraints"},
	} {
		_, fault := alto.ParseCostFilter([]byte(body), known)
		require.NotNil(t, fault, body)
		fault.SyntaxError = ""
		require.Equal(t, want, *fault, body)
	}
	_, fault := alto.ParseEndpointCost([]byte(`{`+cost+`, "endpoints": {"srcs": [], "dsts": []}}`), known)
	require.Equal(t, "endpoints/srcs", fault.Field)
	_, fault = alto.ParseEndpointCost([]byte(`{`+cost+`, "endpoints": {"srcs": ["192.0.2.1"]}}`), known)
	require.Equal(t, alto.Error{Code: "E_INVALID_FIELD_VALUE", Field: "endpoints/srcs", Value: "192.0.2.1"}, *fault)
}

// TestSeveralCosts is the example of RFC 8189 §4.4: delays of at most 100 or hops of at most 2, and both shown.
func TestSeveralCosts(t *testing.T) {
	t.Parallel()
	c, fault := alto.ParseCostFilter([]byte(`{
		"multi-cost-types": [{"cost-mode": "numerical", "cost-metric": "routingcost"}, {"cost-mode": "numerical", "cost-metric": "hopcount"}],
		"or-constraints": [["[0] le 100"], ["[1] le 2", "[0] le 300"]]}`), known)
	require.Nil(t, fault)
	pass := func(routing, hops float64) bool {
		return c.Passes(func(i int) (float64, bool) { return []float64{routing, hops}[i], true })
	}
	require.True(t, pass(50, 9))
	require.True(t, pass(200, 2))
	require.False(t, pass(200, 3))
	require.False(t, c.Passes(func(int) (float64, bool) { return 0, false }), "what is not known is not within bounds")
	text, err := alto.AppendCosts(nil, "cost-map", alto.Meta{MultiCostTypes: c.Types}, alto.Matrix{
		Sources: []string{"a"}, Targets: []string{"b", "c"},
		Cost: func(kind, _, target int) (float64, bool) { return 1.5, kind == 0 && target == 0 },
	})
	require.NoError(t, err)
	require.Contains(t, string(text), `"cost-map":{"a":{"b":[1.5,null]}}`)
}

// TestCalendars has the forms of the examples of RFC 8896 §4: one cost by intervals of time, and one of two.
func TestCalendars(t *testing.T) {
	t.Parallel()
	const types = `"multi-cost-types": [{"cost-mode": "numerical", "cost-metric": "routingcost"}, {"cost-mode": "numerical", "cost-metric": "hopcount"}]`
	c, fault := alto.ParseCostFilter([]byte(`{"cost-type": {"cost-mode": "numerical", "cost-metric": "routingcost"}, "calendared": [true],
		"pids": {"srcs": ["PID1", "PID2"], "dsts": ["PID1", "PID2", "PID3"]}}`), known)
	require.Nil(t, fault)
	require.Equal(t, []bool{true}, c.Calendared)
	m := alto.Matrix{
		Sources: []string{"PID1"}, Targets: []string{"PID1", "PID2", "PID3"}, Intervals: 3,
		Cost:       func(kind, _, target int) (float64, bool) { return float64(target), true },
		Calendared: func(kind int) bool { return kind == 0 },
		Foreseen: func(_, i, _, target int) (float64, bool) {
			return float64(10*target + i), target < 2 || i == 1 && target == 2
		},
	}
	meta := alto.Meta{CostType: &c.Types[0], Calendars: []alto.Calendar{{
		Start: alto.HTTPDate(time.Date(2014, 7, 1, 15, 0, 0, 0, time.FixedZone("", 7200))), IntervalSize: 7200, NumberOfIntervals: 3,
	}}}
	text, err := alto.AppendCosts(nil, "cost-map", meta, m)
	require.NoError(t, err)
	require.JSONEq(t, `{"meta": {"cost-type": {"cost-mode": "numerical", "cost-metric": "routingcost"}, "calendar-response-attributes": [
		{"calendar-start-time": "Tue, 01 Jul 2014 13:00:00 GMT", "time-interval-size": 7200, "number-of-intervals": 3}]},
		"cost-map": {"PID1": {"PID1": [0, 1, 2], "PID2": [10, 11, 12], "PID3": [null, 21, null]}}}`, string(text))

	c, fault = alto.ParseCostFilter([]byte(`{`+types+`, "calendared": [true, false]}`), known)
	require.Nil(t, fault)
	text, err = alto.AppendCosts(nil, "cost-map", alto.Meta{MultiCostTypes: c.Types}, m)
	require.NoError(t, err)
	require.Contains(t, string(text), `"PID2":[[10,11,12],1]`)

	for body, value := range map[string]string{`[true]`: "[true]", `[true, 1]`: "1", `[]`: "[]"} {
		_, fault := alto.ParseCostFilter([]byte(`{`+types+`, "calendared": `+body+`}`), known)
		require.Equal(t, alto.Error{Code: "E_INVALID_FIELD_VALUE", Field: "calendared", Value: value}, *fault)
	}
	_, fault = alto.ParseCostFilter([]byte(`{`+types+`, "calendared": true}`), known)
	require.Equal(t, alto.Error{Code: "E_INVALID_FIELD_TYPE", Field: "calendared"}, *fault)
}

func FuzzRequests(f *testing.F) {
	f.Add([]byte(`{"cost-type": {"cost-mode": "numerical", "cost-metric": "routingcost"}, "constraints": ["ge 5"], "pids": {"srcs": ["a"]}}`))
	f.Fuzz(func(_ *testing.T, body []byte) {
		_, _ = alto.ParseCostFilter(body, known)
		_, _ = alto.ParseEndpointCost(body, known)
		_, _ = alto.ParseMapFilter(body)
		_, _ = alto.ParsePropertyRequest(body, func(string) bool { return true })
	})
}
