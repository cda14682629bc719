package approval

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/toolinput"
)

// This file makes and stores the rules that people's decisions become, and says what they match.

// StandingRule is a human's decision for all similar questions of a session or of the project.
type StandingRule struct {
	domain.Rule
	Command   string         // command that the rule covers; "" for any input, and with SameInput
	SameInput bool           // the rule covers one input only
	Session   domain.Session // not set if the rule is for the project
}

// Rules lists the standing rules that count, the oldest first.
func (in *Inbox) Rules(ctx context.Context) ([]StandingRule, error) {
	found, err := in.store.AllRules(ctx)
	if err != nil {
		return nil, store.Explain(err)
	}
	rules := make([]StandingRule, 0, len(found))
	for _, r := range found {
		if in.isOldRule(r) {
			continue
		}
		rule := StandingRule{Rule: r, Command: r.Command}
		if isForExactInput(r) {
			rule.Command, rule.SameInput = "", true
		}
		if r.Session != 0 {
			if rule.Session, err = in.store.Session(ctx, r.Session); err != nil {
				return nil, store.Explain(err)
			}
		}
		rules = append(rules, rule)
	}
	return rules, nil
}

// ForgetRule deletes a standing rule; its calls are asked again. The error is of KindRuleNotFound
// if none has the id.
func (in *Inbox) ForgetRule(ctx context.Context, id int64) error {
	return in.turns.Write(ctx, func(t store.Tx) error {
		err := t.DeleteRule(id)
		if errors.Is(err, store.ErrNotFound) {
			return domain.Errorf(domain.KindRuleNotFound, "no standing rule has the id %d", id)
		}
		return err
	})
}

// standingRules returns the valid rules of a session and of the project.
func (in *Inbox) standingRules(t store.Tx, session int64) ([]domain.Rule, error) {
	rules, err := t.Rules(in.ctx, session)
	return slices.DeleteFunc(rules, in.isOldRule), err
}

// isOldRule reports whether a rule no longer counts. Deny rules always do.
func (in *Inbox) isOldRule(r domain.Rule) bool {
	return r.Effect != config.EffectDeny && in.isOld(r.Created)
}

// isOld reports whether a decision of that time no longer counts.
func (in *Inbox) isOld(decided time.Time) bool {
	return in.since != nil && decided.Before(in.since())
}

// Reconsider applies the policy again to the open questions of a session whose settings or
// rules have changed.
func (in *Inbox) Reconsider(t store.Tx, session int64) error {
	pending, err := t.PendingInSession(in.ctx, session)
	if err != nil {
		return err
	}
	return in.reconsider(t, pending)
}

// ReconsiderAll applies the policy again to all open questions, after the project's or configured
// rules have changed.
func (in *Inbox) ReconsiderAll(ctx context.Context) error {
	return in.turns.Write(ctx, in.reconsiderAll)
}

func (in *Inbox) reconsiderAll(t store.Tx) error {
	pending, err := t.PendingApprovals(in.ctx, 0)
	if err != nil {
		return err
	}
	return in.reconsider(t, pending)
}

// reconsider closes the questions that the policy can answer now. Stale ones are left to people.
func (in *Inbox) reconsider(t store.Tx, pending []domain.Approval) error {
	situations := make(map[int64]Situation) // by session
	for _, a := range pending {
		if a.Type != domain.FunctionCall || a.Stale {
			continue
		}
		turn, err := t.Turn(in.ctx, a.Turn)
		if err != nil {
			return err
		}
		if turn.State == domain.Draft { // not an agent's tool; see Propose
			continue
		}
		situation, known := situations[a.Session]
		if !known {
			if situation, err = in.situationOf(t, turn); err != nil {
				return err
			}
			situations[a.Session] = situation
		}
		situation.Turn = turn
		ruling := in.policy.Judge(callOf(a), situation)
		if !ruling.IsSettled() {
			continue
		}
		decideBy(&a, ruling)
		if err := in.close(t, a); err != nil {
			return err
		}
	}
	return nil
}

// Directories are where the files of a session are. All are absolute; "": none.
type Directories struct {
	Root     string // the project
	Worktree string // the project in the git worktree of the session
	CWD      string // the session's directory, for relative paths
}

// ruleSpec describes the rules to make of a decision.
type ruleSpec struct {
	Session int64  // 0: for the project
	Effect  string // an effect of package config
	Directories
	Pattern string // replaces the pattern; "": that of [rulePreview]
}

// errNoPattern means that a question's rule has no pattern to replace.
var errNoPattern = errors.New("the rule is for no command and no files")

// rulesFor returns the rules that a decision on an approval becomes. They match the tool and no
// more than the question needs: the same command, the files of the project, or those of another
// directory, or, for an unnamed tool, the same input. An input with several readings gets one rule per
// reading; a command with several readings does so only if denied.
//
// The error is [errNoPattern] if s.Pattern cannot apply.
func rulesFor(a domain.Approval, s ruleSpec) ([]domain.Rule, error) {
	c := callOf(a)
	rule := domain.Rule{Session: s.Session, Effect: s.Effect, Tool: c.tool}
	turns := c.kind == "execute" || c.commandNotText || !c.command.IsNothing()
	switch {
	case c.IsAmbiguous():
		rule.Command = exactInput + a.Question
	case turns && c.commandText != "":
		rule.Command = c.commandText
	case turns, c.isPlan:
		rule.Command = exactInput + a.Question
	case c.touchesFiles():
		if rule.Path = s.patternFor(c.paths); rule.Path == "" || c.pathNotText {
			rule.Path, rule.Command = "", exactInput+a.Question
		}
	case c.couldBeAny():
		rule.Command = exactInput + a.Question
	}
	if s.Pattern != "" && s.Pattern != rulePreviewOf(rule).Pattern {
		switch {
		case c.IsAmbiguous() || c.isPlan || c.extended:
			return nil, errNoPattern
		case turns:
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

// eachRead returns the readings of a command that each get a rule, beside the rule for the exact
// input: a denied reading is also denied when written plainly.
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

// patternFor returns the pattern of the project if all files are in it, or else that of the one
// directory that contains them, or "". Files in a worktree have the names that they have in the project.
func (in Directories) patternFor(paths []string) string {
	dir, all := "", true
	for i, p := range paths {
		if !filepath.IsAbs(p) {
			p = filepath.Join(in.CWD, p)
		}
		p = filepath.Clean(p)
		base := cmp.Or(in.Worktree, in.Root)
		if in.Worktree != "" && isBelow(in.Root, p) && !isBelow(base, p) { // no allow rule is for the user's own files
			return ""
		}
		all = all && base != "" && p != base && isBelow(base, p) && !isInGit(p[len(base):])
		of := filepath.Dir(p)
		if i > 0 && dir != of {
			dir = ""
		} else {
			dir = of
		}
	}
	pattern := func(dir, of string) string {
		return strings.TrimSuffix(globSigns.Replace(filepath.ToSlash(dir)), "/") + of
	}
	switch {
	case len(paths) > 0 && all:
		return pattern(in.Root, "/**")
	case dir == "":
		return ""
	}
	return pattern(dir, "/*")
}

// globSigns escapes the special characters of a glob.
var globSigns = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`)

// rulePreview returns what a question's rule would match. ok is false if no allow rule can be made
// of it.
func rulePreview(a domain.Approval, in Directories) (domain.RulePreview, bool) {
	if c := callOf(a); a.Type != domain.FunctionCall || c.isPlan || a.IsProposal() || c.IsAmbiguous() || c.unknown && toolinput.IsEmpty(c.input) {
		return domain.RulePreview{}, false
	}
	rules, err := rulesFor(a, ruleSpec{Directories: in})
	if err != nil {
		return domain.RulePreview{}, false
	}
	return rulePreviewOf(rules[0]), true
}

// rulePreviewOf returns what a rule matches.
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

// explanationOf describes a rule made by a decision.
func explanationOf(r domain.Rule) string {
	p := rulePreviewOf(r)
	what := p.Tool
	switch p.Covers {
	case domain.CoversInput:
		what += ", with the same input"
	case domain.CoversCommand, domain.CoversFiles:
		what += " " + p.Pattern
	}
	return fmt.Sprintf(
		"decided on %s %s: %s %s (rule %d)", r.Created.Local().Format(time.DateOnly), domain.ScopeText(r.Scope()), r.Effect, what, r.ID,
	)
}

// exactInput begins the Command of a rule for a tool that runs something without a command member.
// The hash of the input follows, and the rule matches only that input.
const exactInput = "\x00"

// isForExactInput reports whether a rule matches only one input. Its Command is then not readable.
func isForExactInput(r domain.Rule) bool { return strings.HasPrefix(r.Command, exactInput) }

// isInput reports whether the Command of a rule names the input of a call.
func (c Call) isInput(effect, command string) bool {
	return command == exactInput+c.hash ||
		effect == config.EffectDeny && command == exactInput+inputHash(c.tool, c.input)
}

// inputHash returns the same hash for the same tool and input, however spelled, and for nothing
// else.
func inputHash(tool string, input json.RawMessage) string {
	hash := sha256.New()
	hash.Write([]byte(tool + "\x00" + toolinput.Fingerprint(input)))
	return hex.EncodeToString(hash.Sum(nil))
}
