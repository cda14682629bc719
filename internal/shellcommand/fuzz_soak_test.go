//go:build soak

package shellcommand_test

import (
	"testing"
	"time"
)

func init() {
	judgeTime = func(t *testing.T) func() {
		began := time.Now()
		return func() {
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("it took %v", took)
			}
		}
	}
}
