package executor

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/executor/process"
	"github.com/duet-rpc/duet-rpc/internal/executor/task"
)

// This file is the driver of programs that know no protocol: one is
// started for each prompt, and what it prints is the answer.

// maxArgument is the longest prompt that goes in an argument, in bytes: the
// system takes no more than 128 KiB in one.
const maxArgument = 100 << 10

const promptMark = "{prompt}"

// A commandDriver runs prompts with programs. It keeps nothing between them.
type commandDriver struct{ processes *process.Runner }

// newCommandDriver makes a Driver whose programs belong to processes.
func newCommandDriver(processes *process.Runner) *commandDriver { return &commandDriver{processes} }

// Run runs a task to its end. The program's goroutines end with it.
func (d *commandDriver) Run(t *task.Task) (stopReason string, failed *task.Failure) {
	prompt, failed := withLinks(t.Launch.Name, t.Params)
	if failed != nil {
		return "", failed
	}
	if t.Launch.History != "none" {
		prompt = task.Before(t.Conversation.Messages, prompt) + prompt
	}
	if ignored := settingsOf(t.Conversation); ignored != "" {
		t.Problem(task.CodeIgnored, fmt.Sprintf("%s is a plain command, which is started as it is configured, without %s", t.Launch.Name, ignored))
	}
	argv, stdin := commandLine(t.Launch, prompt)
	env, failed := t.Environment()
	if failed != nil || t.Stopped() {
		return "", failed
	}
	path, err := env.Find(cmp.Or(t.Launch.Program, argv[0]), t.Params.CWD)
	if err != nil {
		return "", task.StartFailure(t.Launch, t.Params.CWD, err)
	}
	proc, err := d.processes.Start(process.Spec{Path: path, Argv: argv, CWD: t.Params.CWD, Env: env, Stdin: stdin})
	if err != nil {
		return "", task.StartFailure(t.Launch, t.Params.CWD, err)
	}
	t.Started(proc)
	var beside sync.WaitGroup
	defer beside.Wait()
	if stdin {
		beside.Go(func() { // a program that does not read is none the worse
			proc.Write([]byte(prompt))
			proc.CloseInput()
		})
	}
	beside.Go(func() {
		select {
		case <-t.Context().Done():
			proc.Interrupt()
		case <-proc.Done():
		}
	})
	id := process.RandomID("")
	var text process.TextDecoder
	proc.ReadOutput(t.Context(), func(p []byte) { t.Text(id, "", text.Decode(p)) })
	t.Text(id, "", text.Flush())
	<-proc.Done()
	if proc.Succeeded() {
		return "", nil
	}
	return "", &task.Failure{Code: task.CodeExited, Message: t.Launch.Name + " " + proc.ExitText()}
}

// settingsOf is what a program was to be set to, in words.
func settingsOf(c catalog.GetExecutionContextResult) string {
	var list []string
	if c.ModelConfig != nil && c.ModelConfig.Model != "" {
		list = append(list, fmt.Sprintf("the model %q", c.ModelConfig.Model))
	}
	for _, id := range slices.Sorted(maps.Keys(c.Options)) {
		list = append(list, fmt.Sprintf("the option %q", id))
	}
	return strings.Join(list, " and ")
}

// withLinks is a prompt and where the files are that go with it: a program gets
// nothing else than text.
func withLinks(agent string, p catalog.ExecutePromptParams) (string, *task.Failure) {
	text := p.Prompt
	for _, b := range p.Content {
		uri := b.URI
		if b.Resource != nil {
			uri = b.Resource.URI
		}
		if b.Type != "resource" && b.Type != "resource_link" {
			return "", &task.Failure{Code: task.CodeContent, Message: fmt.Sprintf("%s is a plain command and takes no content of the type %s: it takes text, and links to resources", agent, b.Type)}
		}
		text += "\n\n" + uri
	}
	return text, nil
}

// commandLine is the program and its arguments with the prompt in its place,
// or without it, if it is to go to stdin.
func commandLine(l *catalog.AgentLaunch, prompt string) (argv []string, stdin bool) {
	marked := false
	for _, arg := range l.Command {
		marked = marked || strings.Contains(arg, promptMark)
	}
	// A NUL cannot stand in an argument.
	stdin = l.Prompt == "stdin" || len(prompt) > maxArgument || strings.ContainsRune(prompt, 0)
	for _, arg := range l.Command {
		switch {
		case stdin && arg == promptMark:
		case stdin:
			argv = append(argv, strings.ReplaceAll(arg, promptMark, ""))
		default:
			argv = append(argv, noOption(arg, strings.ReplaceAll(arg, promptMark, prompt)))
		}
	}
	if !stdin && !marked {
		argv = append(argv, noOption("", prompt))
	}
	return argv, stdin
}

// noOption is an argument made of what is configured and a prompt. A prompt is
// never to be taken for an option of the program, so a space comes before one
// that begins like one: it means the same to an agent, and options do not
// begin so.
func noOption(configured, arg string) string {
	if strings.HasPrefix(arg, "-") && !strings.HasPrefix(configured, "-") {
		return " " + arg
	}
	return arg
}
