package half

import (
	"testing"
	"time"
)

func TestLonger(t *testing.T) {
	if longer, share := Longer(2*time.Minute, time.Minute); longer != 2*time.Minute || share != 0.5 {
		t.Fatal(longer, share)
	}
}

func TestCount(t *testing.T) {
	if calls := Count(5, func() {}); calls != 3 {
		t.Fatal(calls)
	}
}
