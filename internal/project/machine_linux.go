package project

import (
	"os"
	"strings"
)

// machineID returns the id of this installation of the system, machine-id(5), or "".
func machineID() string {
	text, _ := os.ReadFile("/etc/machine-id") // machines without an id all count as the same
	id := strings.TrimSpace(string(text))
	if len(id) < machineIDShort || id == "uninitialized" {
		return ""
	}
	return id
}
