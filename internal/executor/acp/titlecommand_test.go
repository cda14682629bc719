package acp

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
)

func TestTitledInput(t *testing.T) {
	const current = "[current working directory /p]"
	for name, c := range map[string]struct {
		call titledCall
		want string // of the input; "": no input
	}{
		"the title is the command": {titledCall{"execute", "touch made", current + " (Makes a file)", true}, `{"command":"touch made"}`},
		"whatever it ends with":    {titledCall{"execute", "(touch made)", current, true}, `{"command":"(touch made)"}`},
		"also with words that could be the model's": {
			titledCall{"execute", "touch made (Makes a file)", current + " (Makes a file) [background]", true}, `{"command":"touch made (Makes a file)"}`,
		},
		"in a directory":                  {titledCall{"execute", "touch made", "[in sub]", true}, `{"command":"touch made","cwd":"sub"}`},
		"which is described":              {titledCall{"execute", "touch made", "[in sub] (Makes [a] file)", true}, `{"command":"touch made","cwd":"sub"}`},
		"in a directory that has a ]":     {titledCall{"execute", "touch made", "[in a]b] (x)", true}, `{"command":"touch made","cwd":"a]b"}`},
		"in one of two":                   {titledCall{"execute", "touch made", "[in sub] (x]", true}, `{"command":"touch made","cwd":["sub","sub] (x"]}`},
		"in one that is cut short":        {titledCall{"execute", "touch made", "[in /p", true}, `{"command":"touch made","cwd":["/p","[in /p"]}`},
		"it wants more than to run it":    {titledCall{"execute", "ls", current, false}, `{"command":"ls","additional_permissions":"perhaps: the agent offers no answer that allows this for good"}`},
		"of several lines":                {titledCall{"execute", "ls\ntouch <x> & (y)", current, true}, `{"command":"ls\ntouch <x> & (y)"}`},
		"before 0.36, with nothing else":  {titledCall{"execute", "touch made", "", true}, `{"command":"touch made"}`},
		"before 0.36":                     {titledCall{"execute", "touch made " + current, "", true}, `{"command":"touch made [current working directory /p]","command_readings":["touch made"]}`},
		"before 0.36, where it is alone":  {titledCall{"execute", "(touch made)", "", true}, `{"command":"(touch made)"}`},
		"before 0.36, in the background":  {titledCall{"execute", "touch made [background]", "", true}, `{"command":"touch made [background]","command_readings":["touch made"]}`},
		"before 0.36, with all there is":  {titledCall{"execute", "a [in d] (x) [background]", "", true}, `{"command":"a [in d] (x) [background]","command_readings":["a","a [in d]","a [in d] (x)"],"cwd":["d","d] (x) [background","."]}`},
		"before 0.36, with two of each":   {titledCall{"execute", "a (b) (c)", "", true}, `{"command":"a (b) (c)","command_readings":["a","a (b)"]}`},
		"before 0.36, in one of two":      {titledCall{"execute", "a [in /p] x [in /etc] (d)", "", true}, `{"command":"a [in /p] x [in /etc] (d)","command_readings":["a","a [in /p] x","a [in /p] x [in /etc]"],"cwd":["/p] x [in /etc","/etc","."]}`},
		"words that only begin like that": {titledCall{"execute", "a [in d", "", true}, `{"command":"a [in d","cwd":["d","[in d","."]}`},
		"another kind of tool":            {titledCall{"edit", "Writing to made", "", true}, ""},
		"no kind":                         {titledCall{"", "touch made", "", true}, ""},
		"no title":                        {titledCall{"execute", " ", current, true}, ""},
	} {
		assert.Equal(t, c.want, string(titledInput(c.call)), name)
	}
}

// The readings of a title contain the command, whatever the command and its text are.
func FuzzTitle(f *testing.F) {
	for _, command := range []string{
		"touch made", "touch made (x)", "(touch made)", "touch x; rm y (z)", "rm y [in /p]", "rm y [current working directory /p] (x)", "rm y [background]", "a ( ( ( (", "touch x #(", "rm\ny (z)",
		strings.Repeat("a (", 300) + ")", "echo ')' ; rm x", "rm x  (y)", "rm x (y) ",
	} {
		for _, words := range []string{"", "x", "x) (y", "] (x", "[background]", "[in /etc]", strings.Repeat(" (", 300)} {
			f.Add(command, "", words, false)
			f.Add(command, "/p/sub", words, true)
			f.Add(command, "/etc] (x", words, true)
		}
	}
	f.Fuzz(func(t *testing.T, command, dir, words string, inBackground bool) {
		if strings.TrimSpace(command) == "" || !utf8.ValidString(command) || !utf8.ValidString(dir) || !utf8.ValidString(words) {
			t.Skip("an empty title, or one that is not UTF-8, is none: what comes as JSON is UTF-8")
		}
		details := "[current working directory /p]"
		if dir != "" {
			details = "[in " + dir + "]"
		}
		if words != "" {
			details += " (" + strings.ReplaceAll(words, "\n", " ") + ")"
		}
		if inBackground {
			details += " [background]"
		}
		for _, c := range []titledCall{{"execute", command, details, true}, {"execute", command + " " + details, "", true}} {
			var in struct {
				Command  string
				Readings []string `json:"command_readings"`
				Dir      any      `json:"cwd"`
			}
			if err := json.Unmarshal(titledInput(c), &in); err != nil {
				t.Fatal(err)
			}
			known, cut := in.Command == command, false
			for _, reading := range in.Readings {
				known, cut = known || reading == command, cut || reading == ""
			}
			if !known && !cut {
				t.Errorf("%q is read as %q, or %q", c.Title, in.Command, in.Readings)
			}
			// The directory is the real one, or it is ambiguous.
			if one, ok := in.Dir.(string); ok && one != dir || in.Dir == nil && dir != "" {
				t.Errorf("%q %q is run in %q, not %v", c.Title, c.Text, dir, in.Dir)
			}
		}
	})
}
