//go:build unix && !linux

package e2e

// Processes returns nothing, because only Linux has /proc.
func (s *Site) Processes() []string { return nil }
