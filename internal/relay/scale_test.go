//go:build !soak

package relay_test

// takeoverEvents is how many events two subscriptions get while hubs are replaced.
const takeoverEvents = 1_600
