// Security runs the corpora of hostile input, wherever in the tree they are, and prints how many cases of each were tried:
//
//	make security
//
// A case is a test or a subtest that passed. Each corpus stays beside the code that it is about; this only says where.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// corpus is what of one kind is tried.
type corpus struct {
	name  string
	tests map[string][]string // of each package
}

// corpora are all of them. TestCorporaAreThere looks for the tests.
var corpora = []corpus{
	{"tokens", map[string][]string{
		"./shared/auth":    {"TestAuthenticate_refuses", "TestAuthenticate_believesNoOtherIssuer", "TestVerify_withoutAnIssuerRefusesAll"},
		"./test/contracts": {"TestTokens", "TestAnAgentActsOnlyAsItself", "TestATokenOfNoAgentIsNoUnknownAgent"},
		"./test/e2e/login": {"TestHostileTokens"},
	}},
	{"PromQL", map[string][]string{
		"./shared/policy/render":         {"TestRendering_neverChangesTheShape", "TestForeign_refusesWhatItCannotRead", "FuzzRendering", "FuzzQuery"},
		"./shared/telemetry/rules/check": {"TestRequest_namesEveryFault", "FuzzRequest"},
	}},
	{"YAML", map[string][]string{
		"./shared/descriptor": {"TestHostile", "FuzzParse", "FuzzTree"},
		"./shared/codecoapp":  {"FuzzParse"},
	}},
	{"SSRF", map[string][]string{
		"./shared/webhook": {"TestNoVectorGetsThrough", "TestRedirectsAreNotFollowed", "TestTokens_forLittoralItself"},
		"./shared/kube":    {"TestNoClusterSendsUsElsewhere"},
	}},
	{"tenants (10,000 calls)", map[string][]string{
		"./test/contracts": {"TestNoCallCrossesTenants"},
	}},
	{"cursors and queries", map[string][]string{
		"./test/contracts": {"TestQueries", "TestBadRequests", "FuzzQueries"},
	}},
	{"headers and paths", map[string][]string{
		"./infra/gateway":   {"TestNobodyLeavesHTTPByTheGateway"},
		"./shared/function": {"TestHandler_keepsTheBeginningOfAPath", "TestHandler_asksForTheRole"},
		"./test/contracts":  {"TestUnknownPaths"},
	}},
	{"forged events", map[string][]string{
		"./shared/boot":                  {"TestRun_neverTakesEventsUnsignedInACluster"},
		"./shared/events":                {"TestSignedCoversIdentityAndData", "TestFromRequest_refusesWhatIsNoEvent", "FuzzFromRequest"},
		"./shared/function":              {"TestDelivery_refusesStrangers"},
		"./functions/outbox/dead-letter": {"TestOnlyWhatWeSignedIsStored"},
		"./test/contracts":               {"TestDeliveriesOfStrangers", "FuzzEvents"},
	}},
	{"slow clients", map[string][]string{
		"./shared/boot":     {"TestServe_keepsNobodyForEver"},
		"./shared/function": {"TestHandler_waitsForABodyNoLongerThanForACall", "TestHandler_leavesTheConnectionToLaterCalls"},
	}},
}

func main() {
	log.SetFlags(0)
	passed, ok, err := run(os.Stderr)
	if err != nil {
		log.Fatal("security: ", err)
	}
	total := 0
	for _, c := range corpora {
		n := 0
		for pkg, tests := range c.tests {
			for _, test := range tests {
				n += passed[pkg+" "+test]
			}
		}
		fmt.Printf("%-20s %6d cases\n", c.name, n)
		total += n
	}
	fmt.Printf("%-20s %6d cases\n", "all", total)
	if !ok {
		log.Fatal("security: not all of them passed")
	}
}

// run runs the tests of each package and counts those that passed, by package and test. Output of failed ones goes to w.
func run(w io.Writer) (passed map[string]int, ok bool, err error) {
	tests := map[string][]string{}
	for _, c := range corpora {
		for pkg, some := range c.tests {
			tests[pkg] = append(tests[pkg], some...)
		}
	}
	passed, ok = map[string]int{}, true
	for _, pkg := range slices.Sorted(maps.Keys(tests)) {
		fmt.Fprintln(w, pkg)
		pattern := "^(" + strings.Join(tests[pkg], "|") + ")$"
		cmd := exec.Command("go", "test", "-count=1", "-json", "-run", pattern, pkg)
		cmd.Stderr = w
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			return nil, false, err
		}
		read := count(out, w, pkg, passed)
		if err := cmp.Or(read, cmd.Wait()); err != nil {
			ok = false
			fmt.Fprintln(w, pkg+":", err)
		}
	}
	return passed, ok, nil
}

// count reads what "go test -json" writes.
func count(from io.Reader, w io.Writer, pkg string, passed map[string]int) error {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 1<<24)
	output := map[string]string{}
	for lines.Scan() {
		var event struct{ Action, Test, Output string }
		if json.Unmarshal(lines.Bytes(), &event) != nil {
			continue // of the build
		}
		top, _, _ := strings.Cut(event.Test, "/")
		switch event.Action {
		case "output":
			output[top] += event.Output
		case "pass":
			if top != "" {
				passed[pkg+" "+top]++
			}
		case "fail":
			fmt.Fprint(w, output[top])
			delete(output, top)
		}
	}
	return lines.Err()
}
