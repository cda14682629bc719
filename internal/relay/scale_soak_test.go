//go:build soak

package relay_test

const takeoverEvents = 6_000
