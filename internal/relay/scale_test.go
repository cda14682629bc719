//go:build !soak

package relay_test

// takeoverEvents is the number of events for each of two subscriptions during the takeovers.
const takeoverEvents = 1_600
