//go:build soak

package watch

const manyFiles = 20_000 // more events than the system queues
