package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/internal/cli/candidate"
	"github.com/duet-rpc/duet-rpc/internal/cli/invocation"
	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/cli/turn"
	"github.com/duet-rpc/duet-rpc/internal/wire"
)

// A response is how a question is answered that is not about a tool.
type response struct {
	words           []string
	fields          []string // NAME=VALUE, of a form
	decline, cancel bool
}

func newRespondCommand(s *invocation.Settings) *cobra.Command {
	var r response
	cmd := &cobra.Command{
		Use:   "respond ID [TEXT...]",
		Short: "Answer a question that is not about a tool",
		Long: "Answer a question that is not about a tool: with one of its options, by name or\n" +
			"by the number that approvals show gives it, or in your own words. Some agents\n" +
			"take their own options alone; --decline chooses none of them.\n\n" +
			"A form is answered with a --field for each of its fields; one that is left out\n" +
			"has the value that the agent proposes. An address is answered with yes once you\n" +
			"are willing to open it; nothing opens it for you. Both can be declined, or\n" +
			"left without an answer by --cancel.\n" + invocation.HubStatusHelp,
		Example: "  duet-rpc approvals respond 7787605b 2\n" +
			"  duet-rpc approvals respond 7787605b --field port=8080 --field log=yes",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(r.fields) > 0 || r.decline || r.cancel {
				return invocation.Exactly("ID")(cmd, args)
			}
			return invocation.AtLeast("ID")(cmd, args)
		},
		ValidArgsFunction: completeFirst(s, candidate.Approvals),
		RunE: func(cmd *cobra.Command, args []string) error {
			r.words = args[1:]
			return answerApproval(cmd, s, args[0], r.decision)
		},
	}
	cmd.Flags().StringArrayVar(&r.fields, "field", nil, "a value of a form, as `NAME=VALUE`; may be given several times")
	cmd.Flags().BoolVar(&r.decline, "decline", false, "decline a form or an address, or choose none of the options")
	cmd.Flags().BoolVar(&r.cancel, "cancel", false, "leave a form or an address without an answer")
	cmd.MarkFlagsMutuallyExclusive("field", "decline", "cancel")
	_ = cmd.RegisterFlagCompletionFunc("field", cobra.NoFileCompletions)
	return cmd
}

// decision is the response as an answer to a question.
func (r response) decision(a wire.Approval) (wire.Decision, error) {
	words := strings.Join(r.words, " ")
	switch {
	case r.decline:
		return wire.Decision{Decision: wire.Deny, Comment: "declined"}, nil
	case r.cancel:
		return wire.Decision{Decision: wire.Cancel}, nil
	case a.Mode == wire.ModeForm && words == "":
		content, err := turn.FormValues(a, r.fields)
		return wire.Decision{Decision: wire.Respond, Content: content}, err
	case len(r.fields) > 0:
		return wire.Decision{}, errors.New("--field is for a form, which this question is not")
	case words == "":
		return wire.Decision{}, errors.New("\"duet-rpc approvals respond\" needs TEXT")
	case a.Mode == wire.ModeURL && words != "yes":
		return wire.Decision{}, fmt.Errorf("this asks whether you open %s: type yes, or use --decline or --cancel", term.Line(a.URL))
	}
	d := wire.Decision{Decision: wire.Respond, Comment: words}
	for i, o := range a.Options {
		if d.Comment == strconv.Itoa(i+1) || d.Comment == o.OptionID || strings.EqualFold(d.Comment, o.Name) {
			d.Option, d.Comment = o.OptionID, o.Name
			break
		}
	}
	return d, nil
}
