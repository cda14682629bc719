package config

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// A knownKey is a row with its place in a file.
type knownKey struct {
	*row
	header string // the header of its table, with NAME for a name: [limits], [[rules]]
	inner  string // of a table: its own header
	of     *schema
	outer  *row // of the table
	record any  // with its defaults
	trust  *trust
	own    string
}

// allKeys returns the rows of all tables, and those of the tables themselves.
func allKeys() (all []knownKey) {
	var walk func(of *schema, in knownKey, title string)
	walk = func(of *schema, in knownKey, title string) {
		record := of.of(in.record)
		for i := range of.rows {
			r := &of.rows[i]
			k := knownKey{row: r, header: in.header, of: of, outer: in.row, record: record, trust: in.trust, own: in.own + r.own}
			if r.trust != nil {
				k.trust = r.trust
			}
			if r.kind.schema == nil {
				all = append(all, k)
				continue
			}
			inner := title + r.key
			switch r.kind.form {
			case list:
				k.inner = "[[" + inner + "]]"
			case entries, dictionary:
				inner += ".NAME"
				fallthrough
			default:
				k.inner = "[" + inner + "]"
			}
			all = append(all, k)
			k.header = k.inner
			walk(r.kind.schema, k, inner+".")
		}
	}
	walk(keys(), knownKey{record: unconfigured(os.Getenv)}, "")
	return all
}

// sample returns a value in TOML that is not the default.
func (k knownKey) sample(t *testing.T) string {
	candidates := slices.Concat(k.example, []string{"true", "false", "2", "7", `"7s"`}, regexp.MustCompile(`"[^"]*"`).FindAllString(k.kind.what, -1))
	for _, toml := range candidates {
		d := ParseDocument("", "", []byte("x = "+toml), boundsOf(SourceUser).document)
		if toml == "" || len(d.Problems) > 0 {
			continue
		}
		standard, _ := k.value(k.record)
		if v := k.kind.read(d.Table(), "x"); v != nil && !reflect.DeepEqual(v, standard) {
			return toml
		}
	}
	require.Fail(t, "the table has no example of "+k.key)
	return ""
}

// harmless are the keys that any project may set.
var harmless = []string{"acp.saved_files", "preview.fallback"}

// TestEachKeyIsReadMergedShownAndDescribed is the test of every row of the table.
func TestEachKeyIsReadMergedShownAndDescribed(t *testing.T) {
	page, err := os.ReadFile("../../docs/configuration.md")
	require.NoError(t, err)
	for _, k := range allKeys() {
		switch k.record.(type) {
		case *Config, *Agent:
		default:
			continue // TestExamplesHaveEveryKey is the test of other records
		}
		if k.kind.form != single {
			continue
		}
		full := strings.Trim(strings.ReplaceAll(k.header, "NAME", "claude"), "[]") + "." + k.key
		full = strings.TrimPrefix(full, ".")
		t.Run(full, func(t *testing.T) {
			dir := t.TempDir()
			user, project := filepath.Join(dir, "config.toml"), filepath.Join(dir, ".duet.toml")
			text := strings.ReplaceAll(k.header, "NAME", "claude") + "\n" + k.key + " = " + k.sample(t) + "\n"
			if k.driver == DriverCommand {
				text += "driver = \"command\"\n"
			}
			getenv := func(name string) string { return map[string]string{"HOME": dir}[name] }
			show := func(file string) (v Value, c *Config) {
				require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
				c, err := Load(Sources{User: user, Project: project, Getenv: getenv, Trust: NewTrust(filepath.Join(dir, "trusted.json"))})
				require.NoError(t, err)
				require.NoError(t, os.Remove(file))
				for _, v = range c.Values() {
					if v.Key == full && v.Source != SourceDefault && v.Source != SourceBuiltIn {
						return v, c
					}
				}
				return Value{}, c
			}
			v, c := show(user)
			assert.Equal(t, SourceUser, v.Source, "it is shown")
			record := any(c)
			if k.outer != nil && k.outer.kind.form == entries {
				a := c.Agents["claude"]
				record = &a
			}
			merged, _ := k.value(record)
			standard, _ := k.value(k.record)
			assert.NotEqual(t, standard, merged, "it is merged")

			if k.own == "" {
				v, _ = show(project)
				assert.Equal(t, SourceProject, v.Source)
				require.NoError(t, os.WriteFile(project, []byte(text), 0o600))
				asks, err := Inspect(project, getenv)
				require.NoError(t, err)
				listed := slices.ContainsFunc(asks.Asks, func(v Value) bool { return v.Key == full })
				assert.Equal(t, v.Waits, listed, "trust lists what waits for it")
				if k.trust == nil {
					assert.Contains(t, harmless, full, "a key needs trust, unless any project may set it")
				} else if k.trust == always {
					assert.True(t, listed, "it waits for trust")
				}
			} else {
				require.NoError(t, os.WriteFile(project, []byte(text), 0o600))
				_, err := Load(Sources{Project: project, Getenv: getenv})
				assert.ErrorContains(t, err, "so it belongs only in your own configuration")
			}
			if k.env != "" {
				unquoted := strings.Trim(k.sample(t), `["]`)
				unquoted, _, _ = strings.Cut(unquoted, `"`)
				c, err := Load(Sources{Getenv: func(name string) string {
					return map[string]string{"HOME": dir, k.env: unquoted}[name]
				}})
				require.NoError(t, err)
				assert.True(t, slices.ContainsFunc(c.Values(), func(v Value) bool { return v.Key == full && v.Source == SourceEnvironment }), k.env)
			}
			table := strings.ReplaceAll(k.header, "NAME", "example")
			assert.Regexp(t, `(?s)#`+regexp.QuoteMeta(table)+`\n([^\n]*\n)*?#`+k.key+` = `, "#\n"+Defaults(), "config --defaults describes it")
			assert.True(t, strings.Contains(string(page), "| `"+k.key+"` |"), "docs/configuration.md describes it")
			assert.NotEmpty(t, k.doc)
		})
	}
}

// The example of every table is valid and has every key. A project's file waits for trust with it.
func TestExamplesHaveEveryKey(t *testing.T) {
	var text strings.Builder
	for line := range strings.Lines(Defaults()) {
		if !strings.HasPrefix(line, "# ") {
			text.WriteString(strings.TrimPrefix(line, "#"))
		}
	}
	file := filepath.Join(t.TempDir(), "config.toml")
	require.NoError(t, os.WriteFile(file, []byte(text.String()), 0o600))
	c, err := Load(Sources{User: file, Getenv: func(string) string { return "" }})
	require.NoError(t, err)
	example := c.Agents["example"]
	for _, k := range allKeys() {
		if k.kind.form != single && k.doc == "" {
			assert.Failf(t, "no documentation", "%s %s", k.header, k.key)
		}
		if k.kind.form != list && k.kind.form != dictionary || strings.HasPrefix(k.header, "[[") {
			continue
		}
		record := any(c)
		if k.outer != nil {
			record = &example
		}
		all := k.to(record)
		require.NotZero(t, all.Len(), k.key)
		var names []reflect.Value
		if all.Kind() == reflect.Map {
			names = all.MapKeys()
		}
		for _, inner := range allKeys() {
			if inner.of != k.kind.schema || inner.kind.form == section || inner.kind.what == flag().what {
				continue
			}
			set := 0
			for i := range all.Len() {
				element := reflect.New(all.Type().Elem())
				if names != nil {
					element.Elem().Set(all.MapIndex(names[i]))
				} else {
					element.Elem().Set(all.Index(i))
				}
				if _, ok := inner.value(element.Interface()); ok {
					set++
				}
			}
			assert.NotZero(t, set, "%s %s", inner.header, inner.key)
		}
	}
	project := filepath.Join(filepath.Dir(file), ".duet.toml")
	own := regexp.MustCompile(`(?m)^((?:safe_directories|sandbox_write|host) .*|\[(daemon|mcp|checkpoints|automation|web|notify|hosts\.\w+)\]\n(\w.*\n)*)`)
	require.NoError(t, os.WriteFile(project, own.ReplaceAll([]byte(text.String()), nil), 0o600))
	inspected, err := Inspect(project, func(string) string { return "" })
	require.NoError(t, err)
	var asks []string
	for _, v := range inspected.Asks {
		asks = append(asks, v.Key)
	}
	for _, want := range []string{
		"agents.example.mcp_servers.files", "keys.openai.command", "builds.app", "gates.tests", "rules", "triggers.morning", "worktrees.setup", "worktree", "default_agent",
	} {
		assert.Contains(t, asks, want)
	}
}

// notConfigured are the fields that no key sets.
var notConfigured = []string{
	"Config.WaitingGates", "Config.WorktreesWait", "Config.Untrusted", "Config.Notes", "Config.projectFile", "Config.origins", "Config.waiting",
	"Config.Budget.Turn.Turns", "Config.Budget.Session.Rounds", "Config.Budget.Session.Repeats", "Config.Budget.Day.Rounds", "Config.Budget.Day.Repeats",
	"Agent.Name", "Agent.Source", "Agent.Trusted", "Agent.FromProject", "Agent.Available", "Agent.Path", "Agent.CLI",
	"Host.Name", "Host.Of", "Host.Made", "Rule.Source", "Rule.File", "Rule.Line", "Build.Definition.Source", "Gate.Definition.Source", "Trigger.FromProject", "Trigger.File", "Trigger.Line",
}

// Each field of a record is set by exactly one row.
func TestEachFieldHasOneRow(t *testing.T) {
	rows := map[any]map[uintptr]int{} // by record, how many rows set the field at an address
	for _, k := range allKeys() {
		if k.kind.form == section {
			continue
		}
		if rows[k.record] == nil {
			rows[k.record] = map[uintptr]int{}
		}
		rows[k.record][k.to(k.record).Addr().Pointer()]++
	}
	require.Len(t, rows, 10)
	for record, addresses := range rows {
		var check func(v reflect.Value, name string)
		check = func(v reflect.Value, name string) {
			for i := range v.NumField() {
				field, name := v.Field(i), name+"."+v.Type().Field(i).Name
				want := 1
				if slices.Contains(notConfigured, name) {
					want = 0
				}
				if n := addresses[field.Addr().Pointer()]; field.Kind() != reflect.Struct {
					assert.Equal(t, want, n, "rows of %s", name)
				} else {
					check(field, name)
				}
			}
		}
		v := reflect.ValueOf(record).Elem()
		check(v, v.Type().Name())
	}
}

// TestConfigurationDocument checks the reference at the end of docs/configuration.md.
func TestConfigurationDocument(t *testing.T) {
	const path, heading = "../../docs/configuration.md", "## All keys\n"
	page, err := os.ReadFile(path)
	require.NoError(t, err)
	before, _, found := bytes.Cut(page, []byte(heading))
	require.True(t, found)
	var b strings.Builder
	b.Write(before)
	b.WriteString(heading + "\nThis section is generated from internal/config/table.go (`make docs`). `duet-rpc config --defaults` prints the same as a file.\n")
	var open *schema
	for _, k := range allKeys() {
		if k.kind.schema != nil {
			fmt.Fprintf(&b, "\n### `%s`\n\n%s\n", k.inner, k.sentences())
			open = nil
			continue
		}
		if k.of != open {
			open = k.of
			b.WriteString("\n| key | value | default | what it does |\n| --- | --- | --- | --- |\n")
		}
		standard := k.standard(k.record)
		if k.unset == "" && standard != "" {
			standard = "`" + standard + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", k.key, k.kind.what, standard, k.sentences())
	}
	testkit.GoldenBytes(t, path, []byte(b.String()))
}
