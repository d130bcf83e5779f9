package api_test

import (
	"testing"

	"github.com/littoral-project/littoral/shared/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }
