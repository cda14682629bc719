package approval

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/toolinput"
)

// exactInput begins the Command of a rule for a tool that runs something, but
// does not say what in a member of its own: the hash of the input follows, and
// the rule holds for that alone.
const exactInput = "\x00"

// isForExactInput reports whether a rule holds for one input alone. Then its
// Command is nothing that anybody could read.
func isForExactInput(r domain.Rule) bool { return strings.HasPrefix(r.Command, exactInput) }

// A ruleSpec says which rules are to be made of a decision.
type ruleSpec struct {
	Thread  int64  // 0: they are for the project
	Effect  string // one of config's
	CWD     string // of the conversation: relative paths are in it
	Pattern string // of what they are to hold for instead; "": as [rulePreview] has it
}

// errNoPattern says that a rule of a question holds for nothing that could be
// given otherwise.
var errNoPattern = errors.New("the rule is for no command and no files")

// rulePreview is what a rule would hold for that is made of a question. It is false if
// none can be made that allows it.
func rulePreview(a domain.Approval, cwd string) (domain.RulePreview, bool) {
	if c := callOf(a); a.Type != domain.FunctionCall || c.isPlan || c.IsAmbiguous() || c.unknown && toolinput.IsEmpty(c.input) {
		return domain.RulePreview{}, false
	}
	rules, err := rulesFor(a, ruleSpec{CWD: cwd})
	if err != nil {
		return domain.RulePreview{}, false
	}
	return rulePreviewOf(rules[0]), true
}

// rulePreviewOf is what a rule holds for.
func rulePreviewOf(r domain.Rule) domain.RulePreview {
	p := domain.RulePreview{Tool: r.Tool, Covers: domain.CoversTool}
	switch {
	case isForExactInput(r):
		p.Covers = domain.CoversInput
	case r.Command != "":
		p.Covers, p.Pattern = domain.CoversCommand, r.Command
	case r.Path != "":
		p.Covers, p.Pattern = domain.CoversFiles, r.Path
	}
	return p
}

// explanationOf says in words what a rule that somebody has decided is.
func explanationOf(r domain.Rule) string {
	where := "for the session"
	if r.Thread == 0 {
		where = "for the project"
	}
	p := rulePreviewOf(r)
	what := p.Tool
	switch p.Covers {
	case domain.CoversInput:
		what += ", with the same input"
	case domain.CoversCommand, domain.CoversFiles:
		what += " " + p.Pattern
	}
	return fmt.Sprintf("decided %s on %s: %s %s (rule %d)", where, r.Created.Local().Format(time.DateOnly), r.Effect, what, r.ID)
}

// rulesFor are the rules that a decision on an approval becomes. They are for the
// tool, and no wider than what was asked needs: of what runs commands, for this
// one alone; of what touches files, for those in the same directory; of a tool
// that the agent has not named, for the same input. Where the input can be read in
// several ways there is one for each of them; of a command that can, if it is denied.
//
// The error is [errNoPattern] where s.Pattern has no use.
func rulesFor(a domain.Approval, s ruleSpec) ([]domain.Rule, error) {
	c := callOf(a)
	rule := domain.Rule{Thread: s.Thread, Effect: s.Effect, Tool: c.tool}
	runs := c.kind == "execute" || c.commandNotText || !c.command.IsNothing()
	switch {
	case c.IsAmbiguous():
		rule.Command = exactInput + a.Question
	case runs && c.commandText != "":
		rule.Command = c.commandText
	case runs, c.isPlan:
		rule.Command = exactInput + a.Question
	case c.touchesFiles():
		if rule.Path = patternFor(s.CWD, c.paths); rule.Path == "" || c.pathNotText {
			rule.Path, rule.Command = "", exactInput+a.Question
		}
	case c.couldBeAny():
		rule.Command = exactInput + a.Question
	}
	if s.Pattern != "" && s.Pattern != rulePreviewOf(rule).Pattern {
		switch {
		case c.IsAmbiguous() || c.isPlan || c.extended:
			return nil, errNoPattern
		case runs:
			rule.Command, rule.Pattern = s.Pattern, true
		case c.touchesFiles():
			rule.Command, rule.Path = "", s.Pattern
		default:
			return nil, errNoPattern
		}
	}
	rules := []domain.Rule{rule}
	for _, command := range c.eachRead(s) {
		if command != "" {
			rule.Command = command
			rules = append(rules, rule)
		}
	}
	return rules, nil
}

// eachRead are the ways to read what a call runs for which there is a rule each, beside
// the one for just this input: what is denied in one is denied if it is said plainly, too.
func (c Call) eachRead(s ruleSpec) (texts []string) {
	switch {
	case c.IsAmbiguous():
		return c.alternatives.texts
	case len(c.readings) > 0 && s.Effect == config.EffectDeny && s.Pattern == "":
		texts = append(texts, c.command.Text)
		for _, reading := range c.readings {
			texts = append(texts, reading.Text)
		}
	}
	return texts
}

// patternFor is the pattern of the one directory in which files are, or "" if
// there is none. Relative paths are in cwd.
func patternFor(cwd string, paths []string) string {
	dir := ""
	for _, p := range paths {
		if !filepath.IsAbs(p) {
			p = filepath.Join(cwd, p)
		}
		in := filepath.ToSlash(filepath.Dir(filepath.Clean(p)))
		if dir != "" && dir != in {
			return ""
		}
		dir = in
	}
	if dir == "" {
		return ""
	}
	return strings.TrimSuffix(globSigns.Replace(dir), "/") + "/*"
}

// globSigns writes what stands for others in a pattern as itself.
var globSigns = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`)

// isInput reports whether the Command of a rule means the input of a call.
func (c Call) isInput(effect, command string) bool {
	return command == exactInput+c.hash || effect == config.EffectDeny &&
		(command == exactInput+inputHash(c.tool, c.input) || command == exactInput+legacyHash(c.tool, c.input))
}

// inputHash is the same for the same tool with the same input, however that is
// spelled, and for nothing else.
func inputHash(tool string, input json.RawMessage) string {
	hash := sha256.New()
	hash.Write([]byte(tool + "\x00" + toolinput.Fingerprint(input)))
	return hex.EncodeToString(hash.Sum(nil))
}

// legacyHash is the Hash of former versions, by which rules may still name an
// input. Several inputs can have one, so it is for what is denied alone.
func legacyHash(tool string, input json.RawMessage) string {
	var value any
	canonical := []byte(input)
	if json.Unmarshal(input, &value) == nil {
		canonical, _ = json.Marshal(value) // it was JSON
	}
	hash := sha256.New()
	hash.Write([]byte(tool + "\x00"))
	hash.Write(canonical)
	return hex.EncodeToString(hash.Sum(nil))
}
