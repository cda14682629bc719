//go:build !soak

package relay_test

// takeoverEvents is how many events two subscriptions get while hubs come and go.
const takeoverEvents = 1_600
