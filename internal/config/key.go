package config

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
	"unicode"
)

const (
	maxKey         = 64 << 10         // bytes of a key
	keyCommandTime = 10 * time.Second // for a command that prints a key
)

// Key is the source of a service's key: exactly one of the fields is set.
type Key struct {
	Env     string   // an environment variable
	Command []string // a program that prints the key
	File    string   // a file with the key, absolute
}

// source returns the one field that is set.
func (k Key) source() (name string, v any) {
	switch {
	case k.Env != "":
		return "env", k.Env
	case len(k.Command) > 0:
		return "command", k.Command
	}
	return "file", k.File
}

// Fetch returns the key, without the white space around it. A command has 10 s and gets no
// input. A file that others may read is used, with a warning in the log. No error quotes file
// content or output. getenv nil means os.Getenv.
func (k Key) Fetch(ctx context.Context, getenv func(string) string) (string, error) {
	if getenv == nil {
		getenv = os.Getenv
	}
	var value string
	var err error
	switch {
	case k.Env != "":
		if value = getenv(k.Env); value == "" {
			return "", fmt.Errorf("getting the key: the environment variable %s is not set", k.Env)
		}
	case len(k.Command) > 0:
		value, err = k.run(ctx, keyCommandTime)
	case k.File != "":
		value, err = k.read(ctx)
	default:
		err = errors.New("no env, command or file is configured for it")
	}
	if err != nil {
		return "", fmt.Errorf("getting the key: %w", err)
	}
	value = strings.TrimSpace(value)
	name, _ := k.source()
	switch {
	case value == "":
		return "", fmt.Errorf("getting the key: its %s gave nothing", name)
	case strings.ContainsFunc(value, unicode.IsControl):
		return "", fmt.Errorf("getting the key: its %s gave more than one line", name)
	}
	return value, nil
}

// run returns the output of the command within limit.
func (k Key) run(ctx context.Context, limit time.Duration) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, k.Command[0], k.Command[1:]...)
	out := &capped{most: maxKey}
	cmd.Stdout = out
	ownGroup(cmd)
	// A grandchild that keeps the pipe open must not block this process.
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return "", fmt.Errorf("the command %s took longer than %v", k.Command[0], limit)
	case ctx.Err() != nil:
		return "", ctx.Err()
	case out.over:
		return "", fmt.Errorf("the command %s printed more than %d bytes", k.Command[0], maxKey)
	case errors.As(err, &exit):
		return "", fmt.Errorf("the command %s failed: %s", k.Command[0], exit.ProcessState)
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		return "", err
	}
	return out.buffer.String(), nil
}

// capped keeps the first bytes that are written to it.
type capped struct {
	buffer bytes.Buffer
	most   int
	over   bool
}

func (c *capped) Write(p []byte) (int, error) {
	keep := min(len(p), c.most-c.buffer.Len())
	c.over = c.over || keep < len(p)
	c.buffer.Write(p[:keep])
	return len(p), nil
}

func (k Key) read(ctx context.Context) (string, error) {
	info, err := os.Stat(k.File)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s is no regular file", k.File)
	}
	if readByOthers(info) {
		slog.WarnContext(ctx, "a key's file can be read by other users: chmod 600 it", "file", k.File)
	}
	f, err := os.Open(k.File)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxKey+1))
	if err == nil && len(text) > maxKey {
		err = fmt.Errorf("%s is longer than %d bytes", k.File, maxKey)
	}
	return string(text), err
}

// needTrust lists the settings of a project's file that wait for the user's trust. They choose
// or run a program, change its input, locate a secret, raise a limit, or allow a tool call. It
// shows values that may be secret only if withValues is set.
func (l *layer) needTrust(under runBounds, withValues bool) []Value {
	if l.source != SourceProject {
		return nil
	}
	below := under.limits
	var out []Value
	add := func(key string, v any) { out = append(out, Value{Key: key, Value: v, Source: l.source}) }
	if l.defaultAgent != nil {
		add("default_agent", *l.defaultAgent)
	}
	if raises(l.maxRuns, below.MaxRuns) {
		add("limits.max_runs", *l.maxRuns)
	}
	if raises(l.queueCap, below.QueueCap) {
		add("limits.queue_cap", *l.queueCap)
	}
	if raises(l.runTimeout, below.RunTimeout) {
		add("limits.run_timeout", shortDuration(*l.runTimeout))
	}
	if raises(l.idleAgents, below.MostIdle()) {
		add("limits.idle_agents", *l.idleAgents)
	}
	for _, raised := range l.budget.Raised(under.budget) {
		add(raised.Key, raised.Value)
	}
	for _, name := range slices.Sorted(maps.Keys(l.agents)) {
		a := l.agents[name]
		before := len(out)
		for _, field := range a.fields(withValues) {
			add("agents."+name+"."+field.name, field.value)
		}
		if len(out) == before {
			add("agents."+name, map[string]string{})
		}
	}
	for _, service := range slices.Sorted(maps.Keys(l.services)) {
		key, v := l.services[service].source()
		add("keys."+service+"."+key, v)
	}
	for _, r := range l.rules {
		if r.Effect == EffectAllow {
			add("rules", phrase(r.String()))
		}
	}
	for _, b := range l.builds {
		add("builds."+b.Name, phrase(commandText(b.Definition, withValues)))
	}
	for _, g := range l.gates {
		add("gates."+g.Name, phrase(commandText(g.Definition, withValues)))
	}
	for _, s := range l.preview.NeedTrust() {
		add(s.Key, s.Value)
	}
	for _, t := range l.triggers {
		add("triggers", phrase(quoteControls(t.String())))
	}
	return out
}

// raises reports whether a limit is set and is above another.
func raises[T cmp.Ordered](limit *T, below T) bool { return limit != nil && *limit > below }

func (a agentTable) fields(withValues bool) []field {
	var out []field
	text := func(name string, s *string) {
		if s != nil {
			out = append(out, field{name, *s})
		}
	}
	text("title", a.title)
	text("driver", a.driver)
	if a.command != nil {
		out = append(out, field{"command", a.command})
	}
	text("prompt", a.prompt)
	text("history", a.history)
	text("files", a.files)
	if a.startTimeout != nil {
		out = append(out, field{"start_timeout", shortDuration(*a.startTimeout)})
	}
	if a.silentAfter != nil {
		out = append(out, field{"silent_after", shortDuration(*a.silentAfter)})
	}
	if a.silentToolAfter != nil {
		out = append(out, field{"silent_tool_after", shortDuration(*a.silentToolAfter)})
	}
	if a.quiet != nil {
		out = append(out, field{"quiet", shortDuration(*a.quiet)})
	}
	if a.protocol != nil {
		out = append(out, field{"protocol", *a.protocol})
	}
	if a.env != nil && withValues {
		out = append(out, field{"env", a.env})
	} else if a.env != nil {
		out = append(out, field{"env", hidden(a.env)})
	}
	if a.envFrom != nil {
		out = append(out, field{"env_from", a.envFrom})
	}
	if a.keys != nil {
		out = append(out, field{"keys", a.keys})
	}
	for _, s := range a.mcpServers {
		out = append(out, field{"mcp_servers." + s.Name, phrase(serverText(s, withValues))})
	}
	return out
}
