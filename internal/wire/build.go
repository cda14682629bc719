package wire

import (
	"fmt"
	"strings"
)

// Stages of a build, as buildProgress tells them; others say that it has ended.
const (
	BuildWaits   = "waiting"
	BuildStarted = "started"
	BuildOutput  = "output"
)

// Builds are what listBuilds answers.
type Builds struct {
	Builds []BuildTarget `json:"builds"`
}

// A BuildTarget is something that can be built.
type BuildTarget struct {
	Name     string   `json:"name"`
	Command  []string `json:"command"`
	Backend  bool     `json:"backend"`
	Detected bool     `json:"detected"`
}

// Line is the command as somebody would type it.
func (t BuildTarget) Line() string { return commandLine(t.Command) }

// BuildProgress is what the notification buildProgress has.
type BuildProgress struct {
	Name    string   `json:"name"`
	Stage   string   `json:"stage"`
	Command []string `json:"command"`
	Output  string   `json:"output"`
}

// Line is the command as somebody would type it.
func (p BuildProgress) Line() string { return commandLine(p.Command) }

func commandLine(words []string) string {
	if len(words) == 3 && words[0] == "sh" && words[1] == "-c" {
		return words[2]
	}
	return strings.Join(words, " ")
}

// A Diagnostic is something that is wrong at a place.
type Diagnostic struct {
	File     string `json:"file"`
	Line     int    `json:"line"`
	Column   int    `json:"column"`
	Severity string `json:"severity"`
	Message  string `json:"message"`
	Source   string `json:"source"`
}

// Built is what a build answers that has succeeded.
type Built struct {
	Name     string       `json:"name"`
	Warnings []Diagnostic `json:"warnings"`
}

// Found says how many warnings there are, behind what else is said; "" if there are none.
func (b Built) Found() string {
	n := 0
	for _, d := range b.Warnings {
		if d.Severity == "warning" {
			n++
		}
	}
	switch n {
	case 0:
		return ""
	case 1:
		return ", 1 warning"
	}
	return fmt.Sprintf(", %d warnings", n)
}
