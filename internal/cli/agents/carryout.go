package agents

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/project"
	"github.com/duet-rpc/duet-rpc/internal/registry"
	"github.com/duet-rpc/duet-rpc/internal/registry/added"
)

// agentsDirectory is where archives are unpacked, and records are kept.
func agentsDirectory() (string, error) {
	data, err := project.DataHome(os.Getenv)
	return filepath.Join(data, "agents"), err
}

func readRecords() (*added.Records, error) {
	directory, err := agentsDirectory()
	if err != nil {
		return nil, err
	}
	return added.Read(directory)
}

// absolute is a registry that can be found from any directory.
func absolute(from string) string {
	if registry.IsFile(from) {
		if path, err := filepath.Abs(from); err == nil {
			return path
		}
	}
	return from
}

// planned is what is to be done for the agent of an id, as somebody chooses.
func planned(text []byte, id string, choice registry.Choice) (registry.Plan, error) {
	entry, err := registry.Parse(text, id)
	if err != nil {
		return registry.Plan{}, err
	}
	if choice.Directory, err = agentsDirectory(); err != nil {
		return registry.Plan{}, err
	}
	choice.Has = func(program string) bool {
		_, err := exec.LookPath(program)
		return err == nil
	}
	plan, err := entry.Plan(choice)
	if err != nil {
		return plan, fmt.Errorf("%s cannot be got: %w", entry.ID, err)
	}
	return plan, nil
}

// agentOf is what the configuration says of an agent that is got by a plan.
func agentOf(name string, p registry.Plan) config.NewAgent {
	return config.NewAgent{Name: name, Title: p.Entry.Name, Command: p.Command, Env: p.Env}
}

// A change is all that is done to add an agent, or to bring it up to date.
type change struct {
	source  registry.Source
	plan    registry.Plan
	edit    *config.Edit
	records *added.Records
	was, is added.Record // was is empty for one that is new
}

// carryOut gets what the agent needs, and then has the configuration name it: until
// the very last step all is as it was.
func carryOut(ctx context.Context, c change) error {
	if err := c.source.Install(ctx, c.plan); err != nil {
		return err
	}
	err := c.records.Put(c.is)
	if err == nil {
		if err = c.edit.Write(); err == nil {
			return nil
		}
		if c.was.Name == "" {
			err = errors.Join(err, c.records.Forget(c.is.Name))
		} else {
			err = errors.Join(err, c.records.Put(c.was))
		}
	}
	if c.plan.Directory != "" && !slices.Contains(c.was.Directories, c.plan.Directory) {
		err = errors.Join(err, added.RemoveDirectories(c.records.Mine(c.is, []string{c.plan.Directory})))
	}
	return err
}

// words are a plan's command with its variables, as a shell has them.
func words(p registry.Plan) []string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(p.Env)) {
		words = append(words, name+"="+term.ShellWord(p.Env[name]))
	}
	for _, arg := range p.Command {
		words = append(words, term.ShellWord(arg))
	}
	return words
}
