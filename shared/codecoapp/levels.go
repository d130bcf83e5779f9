package codecoapp

import (
	"strings"

	"github.com/littoral-project/littoral/shared/descriptor"
	"github.com/littoral-project/littoral/shared/problem"
)

// Levels are the classes of a CodecoApp as the figures of CODECO's table 13: QoS, Security and Compliance from 1 to 5, the others in
// percent. What is not said, or not understood, is nil.
type Levels struct{ QoS, Security, Compliance, FailureTolerance, EnergyLimit *float64 }

// How the words of each class rank from 1 to 5, and tolerance in percent. The tables of CODECO have the ranges and not the words.
var (
	rankOfQoS        = map[string]float64{"Gold": 5, "Silver": 3, "BestEffort": 1}
	rankOfSecurity   = map[string]float64{"High": 5, "Good": 4, "Medium": 3, "Low": 2, "None": 1}
	rankOfCompliance = map[string]float64{"High": 5, "Medium": 3, "Low": 1}
	percentTolerated = map[string]float64{"High": 100, "Medium": 50, "Low": 0}
)

// LevelsOf reads the classes of a document; one that is no CodecoApp has none.
func LevelsOf(doc []byte) Levels {
	var faults problem.Faults
	roots, err := descriptor.Load(doc, &faults)
	if err != nil {
		return Levels{}
	}
	for _, root := range roots {
		spec := child(root, "spec")
		if !isCodecoApp(root) || spec == nil {
			continue
		}
		r := reader{generation: generationOf(spec)}
		qos, _, _ := r.enum(spec, wordsOf(performanceOf), swappedQoS, "qosClass", "qosclass")
		security, _, _ := r.enum(spec, wordsOf(scoreOf), swappedSecurity, "securityClass", "securityclass")
		compliance, _, _ := r.compliance(spec)
		tolerance, _, _ := r.enum(spec, wordsOf(lostAfterOf), nil, "appFailureTolerance", "appfailuretolerance")
		out := Levels{
			QoS: ranked(rankOfQoS, qos), Security: ranked(rankOfSecurity, security), Compliance: ranked(rankOfCompliance, compliance),
			FailureTolerance: ranked(percentTolerated, tolerance),
		}
		if limit, n, _ := r.percent(spec, "appEnergyLimit", "appenergylimit"); n != nil {
			out.EnergyLimit = &limit
		}
		return out
	}
	return Levels{}
}

func ranked(of map[string]float64, word string) *float64 {
	if v, known := of[strings.TrimSpace(word)]; known {
		return &v
	}
	return nil
}
