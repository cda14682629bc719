package turn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"text/tabwriter"

	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hubclient"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/internal/shellcommand"
)

// follow returns the turn to show after one that has ended, or nil.
func (a *asker) follow(ctx context.Context, ended protocol.Turn) (*protocol.Turn, error) {
	if id := ended.GoesOnIn(); id != "" {
		next, _, err := hubclient.Turn(ctx, a.hub, id)
		return &next, err
	}
	if len(a.commentTurns) > 0 {
		if ended.State != domain.Completed && a.talk == nil {
			a.view.Note(ended.Outcome())
		}
		next, _, err := hubclient.Turn(ctx, a.hub, a.commentTurns[0])
		a.commentTurns = a.commentTurns[1:]
		return &next, err
	}
	signIn := ended.ErrorCode == hubclient.AuthRequired
	if !signIn && len(ended.AuthMethods) == 0 || a.interrupts {
		return nil, nil
	}
	a.view.End(ended)
	a.showKeptBack(ended.Agent)
	if len(ended.AuthMethods) == 0 {
		return nil, nil
	}
	a.view.showSignIn(ended)
	if a.SignIn == nil || a.Repeat == nil || a.Yes || a.Deny || a.terminal == nil {
		return nil, nil
	}
	return a.signIn(ctx, ended)
}

// showKeptBack names the variables of this terminal that an agent without a sign-in does not get.
func (a *asker) showKeptBack(agent string) {
	if a.KeptBack == nil {
		return
	}
	if names := a.KeptBack(agent); len(names) > 0 {
		a.view.Note(fmt.Sprintf("%s does not get these variables of this terminal: %s; to pass one on, name it under env_from in [agents.%s] "+
			"of your config.toml", agent, strings.Join(names, ", "), agent))
	}
}

// showSignIn prints the commands that sign in.
func (v *View) showSignIn(s protocol.Turn) {
	v.Note("sign in once, with one of:")
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 3, ' ', 0)
	for i, m := range s.AuthMethods {
		note := map[string]string{"terminal": " (in a terminal)", "env_var": " (with a key)"}[m.Type]
		fmt.Fprintf(
			table, "  %d  %s\t%s\n", i+1,
			term.Line("duet-rpc agents login "+shellcommand.Argument(s.Agent)+" --method "+shellcommand.Argument(m.ID)), term.Line(m.Name+note),
		)
	}
	table.Flush()
	v.aside(strings.TrimSuffix(text.String(), "\n"), "")
}

// signIn offers to sign in, and is the session that has sending the same prompt again after
// that, or nil.
func (a *asker) signIn(ctx context.Context, ended protocol.Turn) (*protocol.Turn, error) {
	methods := ended.AuthMethods
	for {
		question := "Sign in now, and go on? a number up to " + strconv.Itoa(len(methods)) + ", or Return for no: "
		if len(methods) == 1 {
			question = "Sign in now, and go on? [y] Yes, or Return for no: "
		}
		of := aKey
		if len(methods) >= 10 {
			of = aLine
		}
		answer, err := a.line(ctx, question, of)
		if answer == "" || err != nil {
			return nil, err
		}
		n, err := strconv.Atoi(answer)
		if len(methods) == 1 && strings.HasPrefix("yes", strings.ToLower(answer)) {
			n, err = 1, nil
		}
		switch {
		case strings.HasPrefix("no", strings.ToLower(answer)):
			return nil, nil
		case err != nil || n < 1 || n > len(methods):
			continue
		}
		if err := a.signInWith(ctx, ended.Agent, methods[n-1].ID); err != nil {
			if a.interrupts {
				return nil, nil
			}
			a.view.Note(err.Error())
			continue
		}
		a.view.Note("sending the same prompt again")
		next, err := a.Repeat(ctx, ended)
		return &next, err
	}
}

// signInWith signs in with a method. A signal cancels that.
func (a *asker) signInWith(ctx context.Context, agent, method string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- a.SignIn(ctx, agent, method) }()
	for {
		select {
		case err := <-done:
			if err != nil && ctx.Err() != nil {
				return errors.New("signing in was cancelled")
			}
			return err
		case <-a.stops: // the program that signs in has stopped as well
			term.Stop()
		case sig := <-a.Signals:
			cancel()
			a.interrupts = a.interrupts || sig != os.Interrupt
		case silent := <-a.silence:
			a.hubSilent(silent, a.view.Note)
		}
	}
}

// line asks for a key or a line that is not an answer to the agent. It is empty if the
// terminal is closed or a signal arrives.
func (a *asker) line(ctx context.Context, question string, of focus) (text string, err error) {
	const isFor = "no question of the agent"
	show := func() {
		if !a.view.asking {
			a.setAside()
			a.meant = cmp.Or(a.meant, isFor)
			a.listen(of)
			a.view.ask(nil, question)
		}
	}
	err = a.modal(ctx, nil, show, a.view.endLine, func(input term.Typed) bool {
		line, ok := a.received(input)
		if !ok {
			return false
		}
		meant := a.meant
		a.meant = ""
		if line.err != nil {
			a.view.endLine()
			return true
		}
		text = line.text
		return meant == isFor
	})
	return text, err
}

// Pick lets the user choose one of several lines with a few typed letters. It returns the index of that
// line, or -1. signals end it, unless the view has a session, which has its own.
func (v *View) Pick(ctx context.Context, signals <-chan os.Signal, lines []string) (chosen int, err error) {
	if v.talk != nil && v.talk.asker != nil {
		defer v.talk.goesOn()
		return v.talk.asker.pick(ctx, lines)
	}
	var running sync.WaitGroup
	a := newAsker(Options{Signals: signals}, v, nil)
	defer a.watch(ctx, &running)()
	return a.pick(ctx, lines)
}

func (a *asker) pick(ctx context.Context, lines []string) (chosen int, err error) {
	size := func() (columns, rows int) {
		columns, rows, ok := term.Size(a.view.side)
		if !ok {
			return 80, 24
		}
		return columns, rows
	}
	list := term.NewList(lines)
	isShown := false
	hide := func() {
		if isShown {
			columns, _ := size()
			fmt.Fprint(a.view.side, list.Cleared(columns))
		}
		isShown = false
	}
	resizes, stop := term.Resized()
	defer stop()
	chosen = -1
	err = a.modal(ctx, resizes, func() {
		if !isShown {
			a.listen(aList)
			fmt.Fprint(a.view.side, list.Screen(size()))
			isShown = true
		}
	}, hide, func(input term.Typed) (isDone bool) {
		hide()
		isDone, chosen = list.Take(a.decode(input.Keys))
		return isDone || input.Err != nil
	})
	return chosen, err
}

// modal gives the keys to something else than a question of the agent, until take has what it needs or a
// signal arrives. show shows what take is about, if it is not on the screen; hide leaves it, also after resizes. A
// question below it keeps its unfinished line.
func (a *asker) modal(ctx context.Context, resizes <-chan os.Signal, show, hide func(), take func(term.Typed) (isDone bool)) error {
	answer := a.unfinished
	a.unfinished = term.EditedLine{}
	a.view.endLine()
	defer func() {
		a.keyboard.giveUp()
		a.release()
		a.unfinished = answer
	}()
	for {
		if !a.isStopped {
			show()
		}
		select {
		case input := <-a.typed:
			if take(input) {
				return nil
			}
		case sig := <-a.Signals:
			a.isClosed = sig == syscall.SIGHUP
			a.interrupts, a.isToEnd = true, sig != os.Interrupt
			hide()
			return nil
		case <-resizes:
			hide()
		case <-a.stops:
			hide()
			a.suspend()
		case <-a.continued:
			a.isStopped = false
			a.keyboard.continued()
			hide()
		case silent := <-a.silence:
			a.hubSilent(silent, a.view.Note)
		case <-ctx.Done():
			hide()
			return context.Cause(ctx)
		}
	}
}

// The hub's errors, in terms of the flags and commands that the user typed.

// InWords returns an error of the hub as a sentence on one line, in which parameters have the
// names of their flags. Other errors stay unchanged.
func InWords(err error) error { return inWords(err, flagOf) }

// InDialogue is InWords for a dialogue, in which there are no flags.
func InDialogue(err error) error { return inWords(err, func(string) string { return "" }) }

func inWords(err error, flagOf func(param string) string) error {
	r, ok := hubclient.RefusalOf(err)
	if !ok {
		return err
	}
	if r.Kind == "cancelled" { // the caller has its own error for what it cancels itself
		return errors.New("the daemon has gone before it answered: it was stopped, or has ended")
	}
	text := r.Message
	if flag := flagOf(r.Param); flag != "" && strings.HasPrefix(text, r.Param+": ") {
		text = flag + strings.TrimPrefix(text, r.Param)
	}
	unlisted := func(value string) bool { return !strings.Contains(text, value) }
	if !slices.ContainsFunc(r.Accepted, unlisted) {
		return errors.New(term.Line(text + whereToLook(r.Kind)))
	}
	return errors.New(term.Line(text + "; choose one of " + strings.Join(r.Accepted, ", ")))
}

// whereToLook names the command that lists the missing object, or returns "".
func whereToLook(kind string) string {
	switch kind {
	case "not_found", "session_not_found":
		return "; `duet-rpc session list` lists the newest"
	case "approval_not_found":
		return "; `duet-rpc approvals --list` lists the open questions"
	case "rule_not_found":
		return "; `duet-rpc approvals rules` lists the rules"
	}
	return ""
}

// flagOf returns the flag for a parameter, or "".
func flagOf(param string) string {
	switch param {
	case "permission_mode", "mode":
		return "--mode"
	case "working_dir", "cwd":
		return "--cwd"
	case "additional_directories":
		return "--add-dir"
	case "options":
		return "--option"
	case "agent", "model", "title", "worktree", "into", "limit", "status", "state", "since", "priority", "pattern", "scope":
		return "--" + param
	}
	return ""
}
