//go:build soak

package trigger

const manyFiles = 20_000 // more events than the system queues
