package executor

import (
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
)

// maxArgument is the longest prompt that goes in an argument, in bytes: the
// system takes no more than 128 KiB in one.
const maxArgument = 100 << 10

const promptMark = "{prompt}"

// runCommand runs the prompt with a program that knows no protocol: what it
// prints is the answer.
func (r *run) runCommand(hub catalog.GetExecutionContextResult) *failure {
	prompt := r.params.Prompt
	if r.launch.History != "none" {
		prompt = transcript(hub.Messages, prompt) + prompt
	}
	argv, stdin := commandLine(r.launch, prompt)
	env, failed := r.environment()
	if failed != nil || r.stopped() {
		return failed
	}
	path, err := env.find(argv[0], r.params.CWD)
	if err != nil {
		return startFailure(r.launch.Name, argv[0], r.params.CWD, err)
	}
	proc, err := r.x.start(spec{path: path, argv: argv, cwd: r.params.CWD, env: env, stdin: stdin})
	if err != nil {
		return startFailure(r.launch.Name, argv[0], r.params.CWD, err)
	}
	r.reportProcess(proc)
	if stdin {
		r.x.work.Go(func() { // a program that does not read is none the worse
			proc.stdin.WriteString(prompt)
			proc.closeInput()
		})
	}
	r.x.work.Go(func() {
		select {
		case <-r.ctx.Done():
			proc.terminate(true)
		case <-proc.done:
		}
	})
	id := randomID("")
	var runes runeKeeper
	proc.readOutput(r.ctx, func(p []byte) { r.text(id, runes.take(p)) })
	r.text(id, runes.rest())
	<-proc.done
	if proc.cmd.ProcessState.Success() {
		return nil
	}
	return &failure{CodeExited, r.launch.Name + " " + proc.exitText()}
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
