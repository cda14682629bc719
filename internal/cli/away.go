package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/cli/turn"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/host"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/internal/worktree"
)

// This file has sessions that begin on a host with the files of this machine (prompt --on), and what brings
// their work back.

// newReceiveCommand and newUploadCommand return the commands that run on a host as the other end of git.
func newReceiveCommand(s *settings) *cobra.Command {
	r := worktree.Receiver{}
	var below string
	cmd := &cobra.Command{
		Use: "receive", Hidden: true, Args: noArguments,
		Short: "Receive commits on standard input and output (started by prompt --on)",
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			top, isBelow := strings.CutSuffix(path.Clean(s.Root), below)
			if !isBelow {
				return fmt.Errorf("the project is in %s of its repository: name a directory that ends with it, with --root", below)
			}
			if r.Dir, err = filepath.Abs(top); err != nil {
				return err
			}
			r.In, r.Out, r.Err = os.Stdin, os.Stdout, os.Stderr
			return worktree.Receive(cmd.Context(), r)
		},
	}
	cmd.Flags().StringVar(&below, "below", "", "what --root names below the top of the repository")
	cmd.Flags().StringVar(&r.From, "from", "", "the repository that sends")
	cmd.Flags().StringVar(&r.ID, "id", "", "the session")
	cmd.Flags().StringVar(&r.Commit, "commit", "", "the commit that a clone checks out")
	return cmd
}

func newUploadCommand(s *settings) *cobra.Command {
	return &cobra.Command{
		Use: "upload", Hidden: true, Args: noArguments,
		Short: "Give commits on standard input and output (started by land)",
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := s.Project()
			if err != nil {
				return err
			}
			return worktree.Upload(cmd.Context(), "", p.Root, os.Stdin, os.Stdout, os.Stderr)
		},
	}
}

// sendTo sends the files of this machine to a host, where the next session begins with them. It makes the host
// that of the command. A signal ends it.
func (s *settings) sendTo(ctx context.Context, name string, o *promptOptions, view *turn.View, signals <-chan os.Signal) error {
	if s.Host != "" {
		return fmt.Errorf("--on %s begins a session with the files of this machine: leave out --host %s", name, s.Host)
	}
	if o.worktree != nil && !*o.worktree {
		return errors.New("--on needs a worktree there: leave out --worktree=false")
	}
	s.Host, s.Here, s.Root = name, s.Root, ""
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var a *host.Away
	var params protocol.StartParams
	var sent worktree.Sent
	if err := term.OrInterrupted(signals, cancel, func() (err error) {
		a, sent, err = host.BeginAway(ctx, &s.Settings, &params)
		return err
	}); err != nil {
		return err
	}
	name = s.Host
	o.away, o.worktree, o.base, o.uuid = a, params.Worktree, params.Base, params.SessionUUID
	noteSent(view, name, sent, true)
	return nil
}

// noteSent says which files a host has, and with lacks which not.
func noteSent(view *turn.View, name string, sent worktree.Sent, lacks bool) {
	text := fmt.Sprintf("%s has the commit %.10s", name, sent.Commit)
	if sent.Uncommitted > 0 {
		text = fmt.Sprintf("%s has your commit and %s", name, term.Count(sent.Uncommitted, "file")+" that you did not commit")
	}
	view.Note(term.Line(text))
	if !lacks {
		return
	}
	showListing(view, "not sent, too large without being committed", listingOf(sent.Left))
	for _, path := range sent.Nested {
		view.Note("not sent, a nested repository: " + term.Line(path))
	}
}

func listingOf(l worktree.Listing) *protocol.Listing {
	if l.Count == 0 {
		return nil
	}
	return &protocol.Listing{Count: l.Count, First: l.First}
}

// bring fetches the work of a session that has ended a turn, so that the host may vanish.
func (s *settings) bring(ctx context.Context, c *client.Client, session protocol.Turn) error {
	a, err := host.AwayOf(ctx, &s.Settings, session)
	if a != nil && err == nil {
		_, _, err = a.Fetch(ctx, c, session)
	}
	return err
}

// land lands the work of a session: here, if it began on a host with files of this machine.
func (s *settings) land(
	ctx context.Context, c *client.Client, session protocol.Turn, params protocol.LandParams,
) (protocol.LandResult, json.RawMessage, error) {
	a, err := host.AwayOf(ctx, &s.Settings, session)
	if err != nil {
		return protocol.LandResult{}, nil, err
	}
	if a == nil {
		return land(ctx, c, session, params)
	}
	r, err := a.Land(ctx, c, session, params)
	if err != nil {
		return r, nil, landError(err, session)
	}
	raw, err := json.Marshal(r)
	return r, raw, err
}

// discard deletes the worktree of a session, and before fetches the work of one that began on a host with files
// of this machine.
func (s *settings) discard(
	ctx context.Context, c *client.Client, session protocol.Turn, force bool, ask func(protocol.Losses) error,
) (protocol.DiscardResult, json.RawMessage, error) {
	a, err := host.AwayOf(ctx, &s.Settings, session)
	if err != nil {
		return protocol.DiscardResult{}, nil, err
	}
	if a == nil {
		return discard(ctx, c, session, force, ask)
	}
	r, err := a.Discard(ctx, c, session, force, func(isLanded bool) (protocol.DiscardResult, error) {
		r, _, err := discard(ctx, c, session, force || isLanded, ask)
		return r, err
	})
	if err != nil {
		return r, nil, err
	}
	raw, err := json.Marshal(r)
	return r, raw, err
}

// awayHere returns the sessions on hosts that began with the files of this machine's project, as they were seen
// last.
func (s *settings) awayHere() []worktree.Session {
	own := s.Settings
	if own.Host != "" {
		own.Host, own.Root = "", own.Here
	}
	p, err := own.Project()
	if err != nil {
		return nil
	}
	return worktree.SessionsAway(p.Root)
}

// awaySessions returns them for a list.
func (s *settings) awaySessions() (list []protocol.Turn) {
	if s.Host != "" {
		return nil
	}
	for _, x := range s.awayHere() {
		list = append(list, protocol.Turn{
			Name: fmt.Sprintf("%d@%s", x.Number, x.Host), State: domain.State(x.State), Agent: x.Agent, SessionTitle: x.Title, ActiveAt: x.Active,
		})
	}
	return list
}

// hitsInCopy is how many lines of a copy a search shows.
const hitsInCopy = 3

// searchCopies returns the lines with all words in the transcripts that came here of sessions on hosts.
func (s *settings) searchCopies(words []string) (hits []*protocol.SearchHit) {
	if s.Host != "" {
		return nil
	}
	var patterns []*regexp.Regexp
	for _, word := range strings.Fields(joined(words)) {
		patterns = append(patterns, regexp.MustCompile("(?i)"+regexp.QuoteMeta(word)))
	}
	for _, x := range s.awayHere() {
		text, err := os.ReadFile(x.Copy)
		if err != nil {
			continue // nothing came here yet
		}
		found := 0
		for line := range strings.Lines(string(text)) {
			line = strings.TrimSpace(line)
			if found == hitsInCopy || slices.ContainsFunc(patterns, func(p *regexp.Regexp) bool { return !p.MatchString(line) }) {
				continue
			}
			found++
			at := patterns[0].FindStringIndex(line)
			hits = append(hits, &protocol.SearchHit{
				Turn: fmt.Sprintf("%d@%s", x.Number, x.Host), CreatedAt: x.Active, Type: "copy", Title: x.Title,
				Snippet: line[:at[0]] + "«" + line[at[0]:at[1]] + "»" + term.Cut(line[at[1]:], afterMatch),
			})
		}
	}
	return hits
}

// afterMatch is how many characters of a line a search shows behind the match.
const afterMatch = 80

// A severalCopiesError reports that a host was made again, and its sessions have the numbers of earlier ones.
type severalCopiesError struct {
	host   string
	copies []worktree.Session
}

func (e *severalCopiesError) Error() string {
	text := fmt.Sprintf("%s was made again, so several sessions are %d@%s; name the one you mean:", e.host, e.copies[0].Number, e.host)
	for _, x := range e.copies {
		text += fmt.Sprintf("\n  duet-rpc --host %s land --here %s   %s, %s ago", e.host, x.ID, term.Line(x.Title), term.Age(x.Active))
	}
	return text
}

// lastCopy returns what came here last of a session of the host, by its number or its UUID.
func (s *settings) lastCopy(id string) (worktree.Session, error) {
	number, _, _ := strings.Cut(id, ".")
	var copies []worktree.Session
	for _, x := range s.awayHere() {
		if x.Host == s.Host && (strconv.FormatInt(x.Number, 10) == number || x.ID == id) {
			copies = append(copies, x)
		}
	}
	switch {
	case len(copies) == 1:
		return copies[0], nil
	case len(copies) > 1:
		return worktree.Session{}, &severalCopiesError{s.Host, copies}
	}
	return worktree.Session{}, fmt.Errorf("nothing came here of session %s@%s: it did not begin with the files of this project (prompt --on)", id, s.Host)
}

// showCopy shows the copy of a session whose host cannot be reached, or returns why it cannot.
func (s *settings) showCopy(cmd *cobra.Command, id string, why error) error {
	x, err := s.lastCopy(id)
	if several := new(severalCopiesError); errors.As(err, &several) {
		return fmt.Errorf("%w; %w", why, err)
	}
	if err != nil {
		return why
	}
	text, err := os.ReadFile(x.Copy)
	if err != nil {
		return why
	}
	progress(cmd, s, "%s", why.Error())
	progress(cmd, s, "this came here %s ago; the work is in %s", term.Age(x.Active), x.Ref)
	return printText(cmd.OutOrStdout(), string(text))
}

// continueHere has a session of a host continue as a new one on this machine, from what came here last of it.
func (s *settings) continueHere(cmd *cobra.Command, o *promptOptions) error {
	if s.Host == "" || !o.fork {
		return errors.New("--here goes with a session of a host: --fork 12@devbox --here")
	}
	x, err := s.lastCopy(o.from)
	if err != nil {
		return err
	}
	if strings.Contains(o.from, ".") {
		return fmt.Errorf("--here continues a whole session: --fork %d@%s --here", x.Number, x.Host)
	}
	s.Host, s.Root = "", s.Here
	o.from, o.fork, o.worktree, o.base = "", false, new(true), x.Ref
	o.title = cmp.Or(o.title, fmt.Sprintf("%s (fork of %d@%s)", x.Title, x.Number, x.Host))
	view := s.newView(cmd.OutOrStdout(), cmd.ErrOrStderr(), s.JSON)
	view.Note(fmt.Sprintf("the agent begins with the files and the transcript that came here %s ago; what the session did since is not here", term.Age(x.Active)))
	return o.with.AttachFile(x.Copy)
}

// fetched returns what came here last of the session of a host that the arguments of a command with --here name.
func (s *settings) fetched(ctx context.Context, command string, args []string) (x worktree.Session, a *host.Away, err error) {
	if s.Host == "" || len(args) == 0 {
		return x, nil, fmt.Errorf("--here goes with a session of a host: %s --here 12@devbox", command)
	}
	if x, err = s.lastCopy(args[0]); err == nil {
		a, err = host.OpenAway(ctx, &s.Settings)
	}
	return x, a, err
}

// landFetched lands what came here last of a session on a host.
func landFetched(cmd *cobra.Command, s *settings, args []string, params protocol.LandParams) error {
	x, a, err := s.fetched(cmd.Context(), "land", args)
	if err != nil {
		return err
	}
	r, err := a.LandFetched(cmd.Context(), x.ID, params)
	if err != nil {
		return landError(err, protocol.Turn{Session: x.Number})
	}
	if s.JSON {
		return printLine(cmd.OutOrStdout(), r)
	}
	showLanded(s.newView(cmd.OutOrStdout(), cmd.ErrOrStderr(), false), r)
	return nil
}

// discardFetched deletes what came here of a session whose host is gone. Work that is not landed stays in a ref.
func discardFetched(cmd *cobra.Command, s *settings, args []string, force bool) error {
	x, a, err := s.fetched(cmd.Context(), "discard", args)
	if err != nil {
		return err
	}
	if !force {
		question := fmt.Sprintf("Delete the transcript of %d@%s here? Work that is not landed stays in %s.", x.Number, x.Host, x.Ref)
		if err := askYes(cmd, s, question, "nothing was discarded", fmt.Sprintf("duet-rpc discard --here %d@%s", x.Number, x.Host)); err != nil {
			return err
		}
	}
	r, err := a.DiscardFetched(cmd.Context(), x.ID)
	if err != nil {
		return err
	}
	if s.JSON {
		return printLine(cmd.OutOrStdout(), r)
	}
	view := s.newView(cmd.OutOrStdout(), cmd.ErrOrStderr(), false)
	view.Note(fmt.Sprintf("%d@%s is discarded here", x.Number, x.Host))
	if r.Ref != "" {
		view.Note("its work is kept; bring it back with: git branch NAME " + term.Line(r.Ref))
	}
	return nil
}
