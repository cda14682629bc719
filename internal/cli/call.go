package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/cli/candidate"
	"github.com/duet-rpc/duet-rpc/internal/cli/invocation"
	"github.com/duet-rpc/duet-rpc/internal/cli/term"
)

const callHelp = `Call any method of the project's hub and print its result as JSON. The second
argument has the parameters; - means that standard input has them.
` + "`duet-rpc call listMethods`" + ` lists the methods.

If the hub refuses the call, the error is printed as

  duet-rpc: MESSAGE (code N, kind K)

on standard error; with --json as the JSON error object.

Exit status: 0 if there is a result; 1 if it was refused, or no hub runs here;
130 if you interrupted it, which cancels the request.`

func newCallCommand(s *invocation.Settings) *cobra.Command {
	var timeout time.Duration
	cmd := &cobra.Command{
		Use: "call METHOD [JSON|-]", Annotations: invocation.Begins(),
		Short:   "Call any method of the project's hub",
		Long:    callHelp,
		Example: "  duet-rpc call daemon.status\n  duet-rpc call task.get '{\"taskId\":\"task-0001\"}'",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 2 {
				return fmt.Errorf("%q takes METHOD and JSON and nothing more, got %q: quote the JSON", cmd.CommandPath(), args[2])
			}
			return invocation.AtLeast("METHOD")(cmd, args)
		},
		ValidArgsFunction: completeFirst(s, candidate.Methods),
		RunE: func(cmd *cobra.Command, args []string) error {
			params, err := callParams(cmd.InOrStdin(), args[1:])
			if err != nil {
				return err
			}
			if timeout < 0 {
				return errors.New("--timeout must not be negative")
			}
			var raw json.RawMessage
			err = invocation.Connected(cmd, s, func(ctx context.Context, c *client.Client) error {
				return c.Call(ctx, args[0], params, &raw, client.WithTimeout(timeout))
			})
			if err != nil {
				return errorOf(cmd, s, err)
			}
			if s.JSON {
				return term.Raw(cmd.OutOrStdout(), raw)
			}
			var indented bytes.Buffer
			if err := json.Indent(&indented, raw, "", "  "); err != nil {
				return fmt.Errorf("reading what the hub answered: %w", err)
			}
			return term.Raw(cmd.OutOrStdout(), indented.Bytes())
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "how long the call may take, such as 30s (0: no limit)")
	return cmd
}

// callParams is what an argument, or standard input, says; nil if nothing.
func callParams(in io.Reader, args []string) (any, error) {
	if len(args) == 0 {
		return nil, nil
	}
	text := []byte(args[0])
	if args[0] == "-" {
		const most = 64 << 20 // what a client can send is less
		var err error
		if text, err = io.ReadAll(io.LimitReader(in, most)); err != nil {
			return nil, fmt.Errorf("reading the parameters from standard input: %w", err)
		}
	}
	text = bytes.TrimSpace(text)
	if len(text) == 0 {
		return nil, nil
	}
	var wrong *json.SyntaxError
	var value json.RawMessage
	if err := json.Unmarshal(text, &value); errors.As(err, &wrong) {
		return nil, fmt.Errorf("the parameters are not JSON: %w (byte %d)", wrong, wrong.Offset)
	} else if err != nil {
		return nil, fmt.Errorf("the parameters are not JSON: %w", err)
	}
	if text[0] != '{' && text[0] != '[' {
		return nil, fmt.Errorf("the parameters must be a JSON object or array, got %s", term.Short(string(text)))
	}
	return value, nil
}

// errorOf is what call says of an error: all that the hub has said.
func errorOf(cmd *cobra.Command, s *invocation.Settings, err error) error {
	var e *client.Error
	if !errors.As(err, &e) {
		return err
	}
	if s.JSON {
		raw, err := json.Marshal(e)
		if err != nil {
			return err
		}
		_ = term.Raw(cmd.ErrOrStderr(), raw)
		return invocation.ExitStatus(1)
	}
	text := fmt.Sprintf("%s (code %d", term.Line(e.Message), e.Code)
	if kind := e.Kind(); kind != "" {
		text += ", kind " + term.Line(string(kind))
	}
	return errors.New(strings.TrimSpace(text) + ")")
}
