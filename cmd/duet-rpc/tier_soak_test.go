//go:build soak

package main_test

const soak = true
