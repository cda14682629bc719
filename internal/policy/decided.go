package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/toolinput"
)

// exactInput begins the Command of a rule for a tool that runs something, but
// does not say what in a member of its own: the hash of the input follows, and
// the rule holds for that alone.
const exactInput = "\x00"

// IsForExactInput reports whether a rule holds for one input alone. Then its
// Command is nothing that anybody could read.
func IsForExactInput(r domain.Rule) bool { return strings.HasPrefix(r.Command, exactInput) }

// RulesFor are the rules that a decision on an approval becomes, for a
// conversation or, where thread is 0, for the project: for the tool, and where it
// runs commands, for this one alone; where the input can be read in several ways,
// for each of them. effect is one of config's.
func RulesFor(a domain.Approval, thread int64, effect string) []domain.Rule {
	c := CallOf(a)
	rule := domain.Rule{Thread: thread, Effect: effect, Tool: c.tool, Command: c.commandText}
	if c.commandText == "" && (c.kind == "execute" || c.commandNotText || !c.command.IsNothing()) || c.IsAmbiguous() {
		rule.Command = exactInput + a.Question
	}
	rules := []domain.Rule{rule}
	if c.IsAmbiguous() {
		for _, command := range c.alternatives.texts {
			if command != "" {
				rule.Command = command
				rules = append(rules, rule)
			}
		}
	}
	return rules
}

// isInput reports whether the Command of a rule means the input of a call.
func (c Call) isInput(effect, command string) bool {
	return command == exactInput+c.hash || effect == config.EffectDeny &&
		(command == exactInput+Hash(c.tool, c.input) || command == exactInput+legacyHash(c.tool, c.input))
}

// Hash is the same for the same tool with the same input, however that is
// spelled, and for nothing else.
func Hash(tool string, input json.RawMessage) string {
	hash := sha256.New()
	hash.Write([]byte(tool + "\x00" + toolinput.Print(input)))
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
