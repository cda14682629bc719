package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/cli/term"
)

// This file has the commands by which a script asks people, and waits for the answer.

// denied is the exit status where somebody has said no.
const denied = 3

const statusHelp = `
The question is in the inbox, for every editor and duet-rpc approvals, and is taken
back when this command is ended. A daemon is started where no hub runs.

Exit status: 0 if it was answered or allowed; 3 if it was denied; 1 if it could not
be asked, or was taken back; 130 if you interrupted it.`

// codeDenied is what the hub answers to what was denied.
const codeDenied = -32003

// in says where something is asked.
type in struct {
	Thread string `json:"thread,omitempty"`
	CWD    string `json:"cwd,omitempty"`
}

func (p *in) flag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&p.Thread, "session", "", "the session that works and is to wait for the answer, too (default: it is nobody's)")
}

// newQuestion makes the command that asks anything.
func newQuestion(s *settings) *cobra.Command {
	var p struct {
		Message string   `json:"message"`
		Subject string   `json:"subject,omitempty"`
		Options []string `json:"options,omitempty"`
		in
	}
	cmd := &cobra.Command{
		Use: "ask TEXT", Annotations: begins(), Args: exactly("TEXT"),
		Short:   "Ask people something in the inbox, and print the answer",
		Long:    "Ask people something in the inbox, and print the answer when it comes.\n" + statusHelp,
		Example: "  duet-rpc ask \"Which version is this to be?\"\n  duet-rpc ask \"Deploy?\" --option now --option tomorrow",
		RunE: func(cmd *cobra.Command, args []string) error {
			p.Message = args[0]
			return wait(cmd, s, "askUser", p, func(answer json.RawMessage) error {
				var r struct {
					Response string `json:"response"`
				}
				if err := json.Unmarshal(answer, &r); err != nil {
					return err
				}
				_, err := fmt.Fprintln(cmd.OutOrStdout(), r.Response)
				return err
			})
		},
	}
	cmd.Flags().StringVar(&p.Subject, "subject", "", "what it is about, in a few words")
	cmd.Flags().StringArrayVar(&p.Options, "option", nil, "an answer to choose; may be given several times")
	p.flag(cmd)
	return cmd
}

// newPermission makes the command that asks whether a tool may run.
func newPermission(s *settings) *cobra.Command {
	var p struct {
		Tool  string          `json:"tool_name"`
		Input json.RawMessage `json:"tool_input,omitempty"`
		in
	}
	var input string
	cmd := &cobra.Command{
		Use: "permission TOOL", Annotations: begins(), Args: exactly("TOOL"),
		Short: "Ask rules, and then people, whether a tool may run",
		Long: "Ask whether a tool may run: rules and modes first, as of an agent, then people in the\n" +
			"inbox. The input with which it may run is printed, since they may change it.\n" + statusHelp,
		Example: "  duet-rpc permission Bash --input '{\"command\":\"make deploy\"}' && make deploy",
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			p.Tool, p.Input = args[0], json.RawMessage(input)
			if input == "" {
				p.Input = json.RawMessage("{}")
			}
			if !json.Valid(p.Input) || p.Input[0] != '{' {
				return fmt.Errorf("--input has to be an object of JSON, such as {\"command\":\"make\"}")
			}
			if p.CWD, err = os.Getwd(); err != nil {
				return err
			}
			return wait(cmd, s, "requestPermission", p, func(answer json.RawMessage) error {
				var r struct {
					UpdatedInput json.RawMessage `json:"updated_input"`
				}
				if err := json.Unmarshal(answer, &r); err != nil {
					return err
				}
				if len(r.UpdatedInput) == 0 {
					r.UpdatedInput = p.Input
				}
				return term.Raw(cmd.OutOrStdout(), r.UpdatedInput)
			})
		},
	}
	cmd.Flags().StringVar(&input, "input", "", "the tool's input, an object of JSON")
	p.flag(cmd)
	return cmd
}

// wait asks, and waits as long as it takes.
func wait(cmd *cobra.Command, s *settings, method string, params any, print func(json.RawMessage) error) error {
	return withHub(cmd, s, func(ctx context.Context, c *client.Client) error {
		var answer json.RawMessage
		err := c.Call(ctx, method, params, &answer, client.WithTimeout(0))
		var refused *client.Error
		if errors.As(err, &refused) && refused.Code == codeDenied {
			fmt.Fprintln(cmd.ErrOrStderr(), term.Line(refused.Message))
			return exitStatus(denied)
		}
		if err != nil {
			return err
		}
		if s.JSON {
			return term.Raw(cmd.OutOrStdout(), answer)
		}
		return print(answer)
	})
}
