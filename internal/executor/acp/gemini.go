package acp

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/executor/task"
)

// Gemini CLI (0.61): its titles with commands, its mode in a message, and its question about a plan.

// geminiCLI is the name by which Gemini CLI introduces itself. Its titles are commands. Titles of
// other agents are text for users, and rules never match them.
const geminiCLI = "gemini-cli"

// Gemini CLI sends no tool input: the command is in the title of the tool call, and the question's
// text has the rest.
//
//   - Since 0.36 the title is the command alone. The text is "[in DIR]", or
//     "[current working directory DIR]" if the model named no directory; then
//     " (the description by the model)", and " [background]".
//   - Before, the title had all of that behind the command, and the text was empty. The end of the
//     command can then be ambiguous: the command may contain brackets, and so may the description.
//
// The result has the form of other agents' input (internal/toolinput), with each possible
// reading, so that rules and users see the same commands.

// A titledCall is the part of a question that describes a tool call.
type titledCall struct {
	Kind  string // of the Agent Client Protocol
	Title string
	Text  string // the text of its content
	// Keeps says that the options include one that allows the call permanently. That option is
	// absent if the call needs more than to run the command (to write or connect outside of its
	// sandbox). The agent reports this in no other way.
	Keeps bool
}

const (
	inDirectory = "[in "
	inCurrent   = "[current working directory "
	described   = "("
	background  = "[background]"
)

// maxReadings limits the readings of a title at each end of their list, in addition to the whole
// title. With more, the command cannot be determined.
const maxReadings = 100

// titledInput returns the input of a call that runs something: the command, other possible
// readings of the title, the directory unless it is the session's, and whether the call needs
// more access. It returns nil if the call runs nothing.
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
		return nil // texts can always be encoded
	}
	return raw
}

// An object is a tool input in the form of other agents.
type object struct {
	Command     string   `json:"command"`
	Readings    []string `json:"command_readings,omitempty"` // see toolinput.Input
	Dir         any      `json:"cwd,omitempty"`              // a string, or a list of possible directories
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

// readings returns the possible commands that are shorter than the whole title: each prefix of a
// possible suffix, the shortest first.
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
	if len(list) > 2*maxReadings {
		list = append(list[:maxReadings], list[len(list)-maxReadings:]...)
		list = append(list, "") // no rule allows an empty command
	}
	return list
}

// directoriesIn returns the directories of all readings of a title. It includes the session's if
// a directory is named, because that text may be part of the command.
func directoriesIn(title string) (list []string) {
	for at := range len(title) {
		if rest, ok := strings.CutPrefix(title[at:], " "); ok && strings.HasPrefix(rest, inDirectory) {
			list = append(list, directories(rest)...)
		}
		if len(list) > maxReadings { // more than maxReadings is too many already
			break
		}
	}
	if len(list) == 0 {
		return nil
	}
	return append(list, ".")
}

// directories returns the possible directories at the beginning of a text. None means that the
// command runs in the session's directory.
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
		if len(list) > maxReadings {
			break
		}
	}
	if len(list) == 0 { // the text is cut short
		return []string{inside, text}
	}
	return list
}

// modeSpoken is the prefix of the message by which Gemini CLI 0.61 reports a change of its mode,
// in place of current_mode_update: after the mode was set, and after it has left plan mode. The
// message has no other content.
const modeSpoken = "[MODE_UPDATE] "

// SpokenMode converts such a message of Gemini CLI to a mode update. It returns nil for any other
// update. It does not parse the text of other agents, of which there is much. A model may write the
// same text, but gains nothing: no mode that an agent enters by itself allows more than "default".
func (s *settingState) SpokenMode(kind string, raw []byte) []byte {
	if kind != "agent_message_chunk" || !s.isProgram(geminiCLI) {
		return nil
	}
	var c struct {
		Content struct {
			Text *string `json:"text"`
		} `json:"content"`
	}
	if json.Unmarshal(raw, &c) != nil || c.Content.Text == nil {
		return nil
	}
	mode, found := strings.CutPrefix(*c.Content.Text, modeSpoken)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !found || s.now.Mode == nil ||
		!slices.ContainsFunc(s.now.Mode.Choices, func(c domain.Choice) bool { return c.ID == mode }) {
		return nil
	}
	update, _ := json.Marshal(map[string]string{"sessionUpdate": "current_mode_update", "currentModeId": mode})
	return update
}

// inFile is the beginning of the title of gemini's question for approval of a plan. The name of
// the file with the plan follows. The question has no other content.
const inFile = "Requesting plan approval for: "
