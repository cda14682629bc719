package cli

import (
	"io"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
)

// program returns a command with a flag of each kind.
func program() *cobra.Command {
	root := &cobra.Command{Use: "program", Short: "A program", SilenceErrors: true, SilenceUsage: true}
	root.PersistentFlags().Bool("json", false, "everybody's")
	one := &cobra.Command{Use: "one", Short: "A command", RunE: func(*cobra.Command, []string) error { return nil }}
	one.Flags().Bool("bool", false, "")
	one.Flags().Int64("int", 0, "")
	one.Flags().Float64("float", 0, "")
	one.Flags().Duration("duration", time.Second, "")
	one.Flags().StringSlice("words", nil, "")
	one.MarkFlagsMutuallyExclusive("bool", "int", "float")
	root.AddCommand(one, newFlagsTopic(nil))
	installUsage(root)
	return root
}

func TestFlagErrorsArePlain(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--bool=x"}, `--bool is true or false, got "x"`},
		{[]string{"--int", "x"}, `--int takes a number, got "x"`},
		{[]string{"--int", "99999999999999999999"}, `--int takes a number, got "99999999999999999999"`},
		{[]string{"--float", "x"}, `--float takes a number, got "x"`},
		{[]string{"--duration", "x"}, `--duration takes a time, such as 30s or 500ms, got "x"`},
		{[]string{"--words", `a"b`}, `--words takes words, separated by commas, got "a\"b"`},
		{[]string{"--none"}, "unknown flag: --none; `program one --help` lists the flags"},
		{[]string{"--int", "1", "--bool"}, "--bool and --int cannot be given together"},
		{[]string{"--int", "1", "--bool", "--float", "1"}, "--bool and --float and --int cannot be given together"},
	} {
		root := program()
		root.SetArgs(append([]string{"one"}, c.args...))
		assert.EqualError(t, explainUsage(root.Execute()), c.want)
	}
	assert.NoError(t, explainUsage(nil))
	assert.Equal(t, io.EOF, explainUsage(io.EOF))
}

func TestSharedFlagsAppearOnce(t *testing.T) {
	help := func(args ...string) string {
		var out testWriter
		root := program()
		root.SetOut(&out)
		root.SetArgs(args)
		assert.NoError(t, root.Execute())
		return string(out)
	}
	assert.NotContains(t, help("--help"), "everybody's")
	assert.Contains(t, help("help", "flags"), "everybody's")
	assert.Contains(t, help("help", "flags"), "Environment:")
	one := help("one", "--help")
	assert.Contains(t, one, "--duration")
	assert.Contains(t, one, "\n\nFlags that every command has, such as --json and --root: program help flags\n")
	assert.NotContains(t, one, "everybody's")
	assert.NotContains(t, one, "Environment:")
}

type testWriter []byte

func (w *testWriter) Write(p []byte) (int, error) {
	*w = append(*w, p...)
	return len(p), nil
}
