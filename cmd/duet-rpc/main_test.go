// Package main_test plays the golden frames and the scripts of testdata through the program.
package main_test

import (
	"testing"

	"github.com/duet-rpc/duet-rpc/internal/e2e"
)

func TestMain(m *testing.M) { e2e.Main(m) }
