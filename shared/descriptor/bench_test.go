package descriptor

import (
	"os"
	"strings"
	"testing"

	"github.com/littoral-project/littoral/shared/compose"
)

// BenchmarkParse measures a descriptor of ordinary size and one near the limit.
func BenchmarkParse(b *testing.B) {
	ordinary, err := os.ReadFile("../../test/contracts/descriptors/dynamic-policy-manager/app_descriptor_all.yaml")
	if err != nil {
		b.Fatal(err)
	}
	large := "components:\n- {name: c, type: kubernetes, manifests: [m]}\n" +
		"manifests:\n- name: m\n  manifest:\n    items:\n" +
		strings.Repeat("    - metadata:\n        name: one-of-many-objects\n        namespace: somewhere-else\n"+
			"      image: registry.example/path/to/image:v1.2.3\n", 6_500)
	for name, doc := range map[string][]byte{"ordinary": ordinary, "large": []byte(large)} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(doc)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Parse(doc, compose.Read); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
