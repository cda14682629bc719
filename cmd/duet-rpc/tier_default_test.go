//go:build !soak

package main_test

// soak reports whether the tests may take their time: `make soak` builds them with the
// tag of this name. Then they play every variant, and more rounds with random seeds.
const soak = false
