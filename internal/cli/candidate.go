package cli

import (
	"context"
	"strings"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/wire"
)

// This file lists what a shell completes a word to, as "word\tdescription": what
// the hub tells. What it does not tell is not completed.

// taskCandidates lists the last tasks, and the name of the last one.
func taskCandidates(ctx context.Context, c *client.Client) []string {
	tasks, _, _ := wire.Call[[]wire.Task](ctx, c, "task.list", map[string]int{"limit": 50})
	var out []string
	for _, t := range tasks {
		out = append(out, t.ID+"\t"+term.Short(t.StateInWords()+" · "+t.Summary))
	}
	if len(out) > 0 {
		out = append(out, "last\tthe session that was started last")
	}
	return out
}

// approvalCandidates lists the open questions.
func approvalCandidates(ctx context.Context, c *client.Client) []string {
	open, _, _ := wire.OpenApprovals(ctx, c, "")
	var out []string
	for _, a := range open {
		out = append(out, a.ID+"\t"+term.Short(a.TaskID+" · "+a.Asks()))
	}
	return out
}

// terminalCandidates lists the terminals.
func terminalCandidates(ctx context.Context, c *client.Client) []string {
	terminals, _, _ := wire.Terminals(ctx, c)
	var out []string
	for _, t := range terminals {
		out = append(out, t.ID+"\t"+describeTerminal(t))
	}
	return out
}

// methodCandidates lists the hub's methods.
func methodCandidates(ctx context.Context, c *client.Client) []string {
	methods, _, _ := wire.Call[[]struct{ Name, Description string }](ctx, c, "listMethods", nil)
	var out []string
	for _, m := range methods {
		out = append(out, m.Name+"\t"+term.Short(m.Description))
	}
	return out
}

// modeCandidates lists the modes that can be asked of an agent.
func modeCandidates(k wire.AgentDescription) []string { return described(k.Modes, "") }

// modelCandidates lists an agent's models.
func modelCandidates(k wire.AgentDescription) []string {
	if k.AgentSession.Model == nil {
		return nil
	}
	return described(k.AgentSession.Model.Available, "")
}

// optionCandidates lists the values of an agent's options, as ID=VALUE.
func optionCandidates(k wire.AgentDescription) (all []string) {
	for _, o := range k.AgentSession.Options {
		all = append(all, described(o.Values, o.ID+"=")...)
	}
	return all
}

// described are choices behind a prefix.
func described(choices []wire.Choice, prefix string) (words []string) {
	for _, c := range choices {
		about := c.Name
		if c.Description != "" {
			about = strings.TrimPrefix(about+": "+c.Description, ": ")
		}
		words = append(words, strings.TrimSuffix(prefix+c.ID+"\t"+term.Short(about), "\t"))
	}
	return words
}
