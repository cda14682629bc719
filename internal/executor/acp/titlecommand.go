package acp

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/executor/task"
)

// This file finds what a tool call runs where the agent tells that in
// the call's title alone. Gemini CLI does: it tells no tool's input, and a question
// about a shell command has these words.
//
//   - Since 0.36 the title is the command, and nothing else. The text that the
//     question shows is "[in DIR]", or "[current working directory DIR]" where the
//     model named no directory; then " (what the model says of it)", and
//     " [background]".
//   - Before, all of that stood in the title, behind the command, and the question
//     showed nothing. Where the command ends can then not always be told: it may
//     have brackets itself, and the model's words may have any.
//
// What is found is written as the input that other agents tell
// (internal/toolinput), with each way to read it: rules and people look at that in
// one place.

// titleTeller is what an agent calls itself whose titles are commands. Those of others
// are words for people, which no rule is held against.
const titleTeller = "gemini-cli"

// A titledCall is what a question says of a tool call.
type titledCall struct {
	Kind  string // as of the Agent Client Protocol
	Title string
	Text  string // what it shows
	// Keeps says that an answer which allows it for good is among those to choose
	// from. There is none where the call wants leave for more than to run the command
	// (to write or to connect where its sandbox does not let it), which the agent says
	// nowhere else.
	Keeps bool
}

const (
	inDirectory = "[in "
	inCurrent   = "[current working directory "
	described   = "("
	background  = "[background]"
)

// mostReadings is how many ways to read a title are told at each end of their list,
// besides the whole of it. Where there are more, nobody can say what the command is.
const mostReadings = 100

// titledInput is the input of a call that runs something: the command; if its title can be
// read in several ways, the other ones; where it runs, unless that is the session's
// directory; and whether it wants more. It is nil if the call runs nothing.
func titledInput(c titledCall) json.RawMessage {
	if c.Kind != "execute" || strings.TrimSpace(c.Title) == "" {
		return nil
	}
	input := object{Command: c.Title}
	if strings.HasPrefix(c.Text, inDirectory) || strings.HasPrefix(c.Text, inCurrent) {
		input.inDirectories(directories(c.Text))
	} else {
		input.Readings = readings(c.Title)
		input.inDirectories(directoriesIn(c.Title))
	}
	if !c.Keeps {
		input.Permissions = "perhaps: the agent offers no answer that allows this for good"
	}
	raw, err := task.JSON(input)
	if err != nil {
		return nil // texts can be written
	}
	return raw
}

// An object is an input as other agents spell it.
type object struct {
	Command     string   `json:"command"`
	Readings    []string `json:"command_readings,omitempty"` // see toolinput.Input
	Dir         any      `json:"cwd,omitempty"`              // a text, or a list of texts: one of them
	Permissions string   `json:"additional_permissions,omitempty"`
}

func (o *object) inDirectories(dirs []string) {
	switch len(dirs) {
	case 0:
	case 1:
		o.Dir = dirs[0]
	default:
		o.Dir = dirs
	}
}

// readings are what the command may be if it is not the whole title: whatever stands
// before something that could be behind it, the shortest first.
func readings(title string) (list []string) {
	rest, _ := strings.CutSuffix(title, " "+background)
	if rest != title {
		list = append(list, rest)
	}
	if strings.HasSuffix(rest, ")") || strings.HasSuffix(rest, "]") {
		for at := range len(rest) {
			for _, mark := range []string{inDirectory, inCurrent, described} {
				if strings.HasPrefix(rest[at:], " "+mark) && strings.TrimSpace(rest[:at]) != "" {
					list = append(list, rest[:at])
				}
			}
		}
	}
	slices.SortStableFunc(list, func(a, b string) int { return len(a) - len(b) })
	list = slices.Compact(list)
	if len(list) > 2*mostReadings {
		list = append(list[:mostReadings], list[len(list)-mostReadings:]...)
		list = append(list, "") // which no rule allows
	}
	return list
}

// directoriesIn are those that a title may name in any way to read it, and the
// session's, if one may be named: that can be the command's own words.
func directoriesIn(title string) (list []string) {
	for at := range len(title) {
		if rest, ok := strings.CutPrefix(title[at:], " "); ok && strings.HasPrefix(rest, inDirectory) {
			list = append(list, directories(rest)...)
		}
		if len(list) > mostReadings { // one is too many already
			break
		}
	}
	if len(list) == 0 {
		return nil
	}
	return append(list, ".")
}

// directories are those that a text may name which begins with one, and in which the
// command may run for it. None: it names none, and the command runs in the session's.
func directories(text string) (list []string) {
	inside, ok := strings.CutPrefix(text, inDirectory)
	if !ok {
		return nil
	}
	for at := range len(inside) {
		rest, ends := strings.CutPrefix(inside[at:], "]")
		if ends && (rest == "" || strings.HasPrefix(rest, " "+described) || strings.HasPrefix(rest, " "+background)) {
			list = append(list, inside[:at])
		}
		if len(list) > mostReadings {
			break
		}
	}
	if len(list) == 0 { // it is cut short
		return []string{inside, text}
	}
	return list
}
