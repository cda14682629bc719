//go:build soak

package testkit

// Soak reports whether the tests are those of `make soak`, which have the tag soak. Then they play
// every variant, and more rounds with random seeds.
const Soak = true
