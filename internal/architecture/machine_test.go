//go:build lint

package architecture

import (
	"cmp"
	"go/ast"
	"go/build/constraint"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// otherTiers are the build tags of tests that may depend on the machine.
var otherTiers = []string{"clients", "soak", "lint"}

// mayStart lists the programs that a test of the default tier may start by name: a machine with a clone
// has them. It may also start itself and the programs that it has built: their names are no constants.
var mayStart = []string{"go", "git", "sh", "/bin/sh"}

// The default tier, go test without build tags, passes on a slow, busy or bare machine.
func TestDefaultTierDependsOnNoMachine(t *testing.T) {
	packages := make(map[string][]source)
	for _, s := range sources(t) {
		helper := !s.isTest && matches(testOnly, s.dir()) && s.dir() != "internal/testkit" // the check finds the calls of testkit instead
		if (s.isTest || helper) && isDefaultTier(s) {
			packages[s.dir()] = append(packages[s.dir()], s)
		}
	}
	for _, files := range packages {
		for _, found := range machineDependencies(files) {
			t.Error(found)
		}
	}
}

// isDefaultTier reports whether go test compiles the file on some platform without tags.
func isDefaultTier(s source) bool {
	for _, group := range s.file.Comments {
		if group.Pos() > s.file.Package {
			break
		}
		for _, c := range group.List {
			if !constraint.IsGoBuild(c.Text) {
				continue
			}
			expr, err := constraint.Parse(c.Text)
			return err != nil || slices.ContainsFunc([]string{"linux", "darwin", "windows"}, func(system string) bool {
				return expr.Eval(func(tag string) bool {
					isSystem := slices.Contains([]string{"linux", "darwin", "windows", "unix"}, tag)
					return tag == system || tag == "unix" && system != "windows" || !isSystem && !slices.Contains(otherTiers, tag)
				})
			})
		}
	}
	return true
}

const (
	sleeps   = "sleeps for real: wait for an event, or do it in synctest.Test"
	compares = "judges real time: measure it in synctest.Test, or move the test to the tag soak"
	memory   = "judges memory statistics: move the test to the tag soak"
	load     = "reads the load of the machine: move the test to the tag soak"
	foreign  = "needs a program that a machine may lack: use sh, git, go or the test binary itself, or move the test to the tag clients"
	noReason = "// machine: needs a reason"
	noExcuse = "// machine: excuses nothing here; remove it"
)

// A mention is a use of a name, or of something that depends on the machine. Functions with the
// same name in one directory count as one.
type mention struct {
	what   string // a name, or one of the texts above
	at     string
	by     string // the innermost function with a name
	bubble bool   // an argument of synctest.Test, or of a function that calls it
}

// checker finds the code in the test files of one directory that depends on the machine.
type checker struct {
	source
	imports  map[string]string // by the name in the file
	bubblers map[string]bool   // functions that call synctest.Test
	wrappers map[string]bool   // the bubblers that get a function
	methods  map[string]bool   // methods that the tests call by name
	names    []mention
	uses     []mention
}

// machineDependencies lists the uses of the machine in the files of one directory.
func machineDependencies(files []source) (list []string) {
	c := &checker{bubblers: make(map[string]bool), wrappers: make(map[string]bool), methods: make(map[string]bool)}
	for known := -1; known < len(c.bubblers)+len(c.methods); { // until nothing is new
		known = len(c.bubblers) + len(c.methods)
		c.names, c.uses = nil, nil
		for _, s := range files {
			c.source, c.imports = s, importNames(s)
			for _, d := range s.file.Decls {
				c.declaration(d)
			}
		}
	}
	real := map[string]bool{"": true} // functions that run outside of a bubble, too
	for known := -1; known < len(real); {
		known = len(real)
		for _, n := range c.names {
			if !n.bubble && real[n.by] {
				real[n.what] = true
			}
		}
	}
	excused := make(map[string]bool) // by position
	for _, s := range files {
		for _, group := range s.file.Comments {
			for _, comment := range group.List {
				if reason, ok := strings.CutPrefix(comment.Text, "// machine:"); ok {
					excused[s.at(comment.Pos())] = false
					if strings.TrimSpace(reason) == "" {
						list = append(list, s.at(comment.Pos())+": "+noReason)
					}
				}
			}
		}
	}
	for _, u := range c.uses {
		inTime := u.what == sleeps || u.what == compares
		if _, ok := excused[u.at]; ok && (!inTime || !u.bubble && real[u.by]) {
			excused[u.at] = true
		} else if !inTime || !u.bubble && real[u.by] {
			list = append(list, u.at+": "+u.what)
		}
	}
	for at, used := range excused {
		if !used {
			list = append(list, at+": "+noExcuse)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

var isEntry = regexp.MustCompile(`^(Test|Benchmark|Fuzz|Example)|^init$`)

// declaration reads a declaration. A test, an exported function of a helper package and a package
// variable run for real; a method does where its type is used for real, since others may call it
// through an interface, unless the tests call it by name.
func (c *checker) declaration(d ast.Decl) {
	f, ok := d.(*ast.FuncDecl)
	if !ok {
		if d, ok := d.(*ast.GenDecl); ok && d.Tok == token.VAR {
			c.walk(d, "", false)
		}
		return
	}
	name := f.Name.Name
	switch {
	case f.Recv != nil:
		ast.Inspect(f.Recv.List[0].Type, func(n ast.Node) bool {
			if on, ok := n.(*ast.Ident); ok {
				c.names = append(c.names, mention{what: "method " + name, by: on.Name})
			}
			return true
		})
		if !c.methods[name] {
			c.names = append(c.names, mention{what: name, by: "method " + name})
		}
	case isEntry.MatchString(name), !c.isTest && f.Name.IsExported():
		c.names = append(c.names, mention{what: name})
	}
	if f.Body != nil {
		c.function(name, f.Type, f.Body, false)
	}
}

// function reads a function with a name.
func (c *checker) function(name string, signature *ast.FuncType, body ast.Node, bubble bool) {
	c.walk(body, name, bubble)
	if !slices.ContainsFunc(c.names, func(n mention) bool { return n.by == name && c.isBubble(n.what) }) {
		return
	}
	c.bubblers[name] = true
	if slices.ContainsFunc(signature.Params.List, func(f *ast.Field) bool { _, ok := f.Type.(*ast.FuncType); return ok }) {
		c.wrappers[name] = true
	}
}

func (c *checker) isBubble(name string) bool { return name == "synctest.Test" || c.wrappers[name] }

// walk reads code of a function. bubble is true if the code runs in a bubble that the function
// makes.
func (c *checker) walk(part ast.Node, by string, bubble bool) {
	note := func(list *[]mention, at token.Pos, what string) {
		*list = append(*list, mention{what, c.at(at), by, bubble})
	}
	ast.Inspect(part, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.AssignStmt: // a literal in a variable or field is a function with that name
			for i, value := range x.Rhs {
				literal, ok := value.(*ast.FuncLit)
				to, named := x.Lhs[min(i, len(x.Lhs)-1)].(*ast.Ident)
				if ok && named {
					c.function(to.Name, literal.Type, literal.Body, false)
				} else {
					c.walk(value, by, bubble)
				}
			}
			return false
		case *ast.CompositeLit: // a function that makes a bubble calls the functions of its tables there
			if x.Type != nil {
				c.walk(x.Type, by, bubble)
			}
			for _, element := range x.Elts {
				c.walk(element, by, bubble || c.bubblers[by])
			}
			return false
		case *ast.CallExpr:
			c.judgeCall(x, func(what string) { note(&c.uses, x.Pos(), what) })
			c.walk(x.Fun, by, bubble)
			inside := c.isBubble(c.nameOf(x.Fun))
			for _, arg := range x.Args {
				c.walk(arg, by, bubble || inside)
			}
			return false
		case *ast.CommClause: // a case of a select may be a deadline
			if wait, ok := x.Comm.(*ast.ExprStmt); ok {
				c.walk(wait.X, by, bubble)
			} else if x.Comm != nil {
				c.walk(x.Comm, by, bubble)
			}
			for _, statement := range x.Body {
				c.walk(statement, by, bubble)
			}
			return false
		case *ast.ExprStmt:
			if wait, ok := x.X.(*ast.UnaryExpr); ok && wait.Op == token.ARROW {
				if call, ok := wait.X.(*ast.CallExpr); ok && c.nameOf(call.Fun) == "time.After" {
					note(&c.uses, x.Pos(), sleeps)
				}
			}
		case *ast.KeyValueExpr:
			if key, ok := x.Key.(*ast.Ident); ok && key.Name == "Path" {
				if path, ok := constantText(x.Value); ok && strings.HasPrefix(path, "/bin/") && !slices.Contains(mayStart, path) {
					note(&c.uses, x.Pos(), foreign)
				}
			}
		case *ast.SelectorExpr:
			name := c.nameOf(x)
			switch name {
			case "time.Sleep", "assert.Never", "assert.Neverf", "require.Never", "require.Neverf":
				note(&c.uses, x.Pos(), sleeps)
			case "time.Since", "time.Until":
				note(&c.uses, x.Pos(), compares)
			case "runtime.ReadMemStats", "debug.ReadGCStats", "metrics.Read":
				note(&c.uses, x.Pos(), memory)
			}
			if call, ok := x.X.(*ast.CallExpr); ok && x.Sel.Name == "Sub" && c.nameOf(call.Fun) == "time.Now" {
				note(&c.uses, x.Pos(), compares)
			}
			if name == x.Sel.Name {
				c.methods[name] = true
			}
			note(&c.names, x.Pos(), name)
			c.walk(x.X, by, bubble)
			return false
		case *ast.Ident:
			note(&c.names, x.Pos(), x.Name)
		case *ast.BasicLit:
			switch text, _ := constantText(x); text {
			case "/proc/self/status", "/proc/self/statm", "/proc/self/smaps", "/proc/self/smaps_rollup", "/proc/meminfo":
				note(&c.uses, x.Pos(), memory)
			case "/proc/loadavg", "/proc/stat", "/proc/cpuinfo":
				note(&c.uses, x.Pos(), load)
			}
		}
		return true
	})
}

// judgeCall notes the start of a program that is not in mayStart, and the search for one.
func (c *checker) judgeCall(call *ast.CallExpr, note func(what string)) {
	name, at := c.nameOf(call.Fun), 0
	switch name {
	case "exec.CommandContext", "testkit.NeedTool":
		at = 1
	case "exec.Command", "exec.LookPath":
	default:
		return
	}
	program, isConstant := constantText(call.Args[at])
	isSearch := name == "exec.LookPath" || name == "testkit.NeedTool"
	if isConstant && !slices.Contains(mayStart, program) || isSearch && !isConstant {
		note(foreign)
	}
}

// nameOf returns the name in an expression: a function, a method without its receiver, or the last
// part of an import path with the package's member.
func (c *checker) nameOf(e ast.Expr) string {
	switch x := e.(type) {
	case *ast.Ident:
		return x.Name
	case *ast.SelectorExpr:
		if from, ok := x.X.(*ast.Ident); ok && c.imports[from.Name] != "" {
			return c.imports[from.Name] + "." + x.Sel.Name
		}
		return x.Sel.Name
	}
	return ""
}

// importNames returns the last parts of the import paths of a file by the names that it uses.
func importNames(s source) map[string]string {
	names := make(map[string]string)
	for _, spec := range s.file.Imports {
		path, _ := strconv.Unquote(spec.Path.Value)
		last := path[strings.LastIndex(path, "/")+1:]
		name := last
		if spec.Name != nil {
			name = spec.Name.Name
		}
		names[name] = last
	}
	return names
}

func constantText(e ast.Expr) (string, bool) {
	literal, ok := e.(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(literal.Value)
	return text, err == nil
}

func TestMachineDependenciesAreFound(t *testing.T) {
	for _, c := range []struct {
		name, body string
		want       string // the only finding, or nothing
	}{
		{"a test sleeps", `func TestX(t *testing.T) { time.Sleep(1) }`, sleeps},
		{"a subtest sleeps", `func TestX(t *testing.T) { t.Run("", func(t *testing.T) { time.Sleep(1) }) }`, sleeps},
		{"a goroutine sleeps", `func TestX(t *testing.T) { go func() { time.Sleep(1) }() }`, sleeps},
		{"sleep as a value", `func TestX(t *testing.T) { f(time.Sleep) }`, sleeps},
		{"a wait for a moment", `func TestX(t *testing.T) { <-time.After(1) }`, sleeps},
		{"nothing happens in real time", `func TestX(t *testing.T) { assert.Never(t, nil, 1, 1) }`, sleeps},
		{"a deadline of a wait", `func TestX(t *testing.T) { select { case <-c: case <-time.After(1): t.Fatal() } }`, ""},
		{"a helper", `func TestX(t *testing.T) { helper() }; func helper() { time.Sleep(1) }`, sleeps},
		{"a helper of a helper", `func TestX(t *testing.T) { a() }; func a() { b() }; func b() { time.Sleep(1) }`, sleeps},
		{"a method", `func TestX(t *testing.T) { h.wait() }; func (*harness) wait() { time.Sleep(1) }`, sleeps},
		{"a method that an interface calls", `func TestX(t *testing.T) { f(&fake{}) }; func (*fake) Run() { time.Sleep(1) }`, sleeps},
		{"a package variable", `var wait = func() { time.Sleep(1) }`, sleeps},
		{"a table of functions", `var modes = map[string]func(){"a": wait}; func wait() { time.Sleep(1) }`, sleeps},
		{"a local function", `func TestX(t *testing.T) { wait := func() { time.Sleep(1) }; wait() }`, sleeps},
		{"TestMain", `func TestMain(m *testing.M) { time.Sleep(1) }`, sleeps},
		{"a fuzz target", `func FuzzX(f *testing.F) { f.Fuzz(func(t *testing.T) { time.Sleep(1) }) }`, sleeps},

		{"a bubble", `func TestX(t *testing.T) { synctest.Test(t, func(t *testing.T) { time.Sleep(1) }) }`, ""},
		{"a goroutine in a bubble", `func TestX(t *testing.T) { synctest.Test(t, func(t *testing.T) { go func() { time.Sleep(1) }() }) }`, ""},
		{"behind a bubble", `func TestX(t *testing.T) { synctest.Test(t, func(t *testing.T) {}); time.Sleep(1) }`, sleeps},
		{"a helper in a bubble", `func TestX(t *testing.T) { synctest.Test(t, func(t *testing.T) { a() }) }; func a() { b() }; func b() { time.Sleep(1) }`, ""},
		{"a helper in a bubble and elsewhere", `func TestX(t *testing.T) { a(); synctest.Test(t, func(t *testing.T) { a() }) }; func a() { time.Sleep(1) }`, sleeps},
		{"a named test in a bubble", `func TestX(t *testing.T) { synctest.Test(t, testX) }; func testX(t *testing.T) { time.Sleep(1) }`, ""},
		{"a local function in a bubble", `func TestX(t *testing.T) { run := func(t *testing.T) { time.Sleep(1) }; synctest.Test(t, run) }`, ""},
		{"a local function in a bubble and elsewhere", `func TestX(t *testing.T) { run := func(t *testing.T) { time.Sleep(1) }; synctest.Test(t, run); run(t) }`, sleeps},
		{"a wrapper of a bubble", `func TestX(t *testing.T) { bubble(t, func() { time.Sleep(1) }) }; func bubble(t *testing.T, f func()) { synctest.Test(t, func(*testing.T) { f() }) }`, ""},
		{"a wrapper that passes it on", `func TestX(t *testing.T) { bubble(t, func(*testing.T) { time.Sleep(1) }) }; func bubble(t *testing.T, f func(*testing.T)) { synctest.Test(t, f) }`, ""},
		{"a wrapper of a wrapper", `func TestX(t *testing.T) { b(t, func(*testing.T) { time.Sleep(1) }) }; func a(t *testing.T, f func(*testing.T)) { synctest.Test(t, f) }; func b(t *testing.T, f func(*testing.T)) { a(t, f) }`, ""},
		{"a local wrapper", `func TestX(t *testing.T) { run := func(f func()) { synctest.Test(t, func(*testing.T) { f() }) }; run(func() { time.Sleep(1) }) }`, ""},
		{"a local function that calls it outside", `func TestX(t *testing.T) { run := func(f func()) { f() }; run(func() { time.Sleep(1) }) }`, sleeps},
		{"a table in a bubble", `func TestX(t *testing.T) { for _, c := range []struct{ f func() }{{func() { time.Sleep(1) }}} { synctest.Test(t, func(*testing.T) { c.f() }) } }`, ""},
		{"a table", `func TestX(t *testing.T) { for _, c := range []struct{ f func() }{{f: func() { time.Sleep(1) }}} { c.f() } }`, sleeps},
		{"a table that others call", `func TestX(t *testing.T) { call([]struct{ f func() }{{func() { time.Sleep(1) }}}) }`, sleeps},
		{"an interface's method in a bubble", `func TestX(t *testing.T) { synctest.Test(t, func(t *testing.T) { f(&fake{}) }) }; func (*fake) Run() { time.Sleep(1) }`, ""},

		{"elapsed time", `func TestX(t *testing.T) { f(time.Since(began)) }`, compares},
		{"elapsed time, spelled out", `func TestX(t *testing.T) { f(time.Now().Sub(began)) }`, compares},
		{"elapsed time in a bubble", `func TestX(t *testing.T) { synctest.Test(t, func(t *testing.T) { f(time.Since(began)) }) }`, ""},
		{"the time alone", `func TestX(t *testing.T) { f(time.Now()) }`, ""},

		{"memory", `func TestX(t *testing.T) { synctest.Test(t, func(t *testing.T) { runtime.ReadMemStats(m) }) }`, memory},
		{"collections", `func TestX(t *testing.T) { debug.ReadGCStats(m) }`, memory},
		{"resident memory", `func TestX(t *testing.T) { os.ReadFile("/proc/self/statm") }`, memory},
		{"load", `func TestX(t *testing.T) { os.ReadFile("/proc/loadavg") }`, load},
		{"open files", `func TestX(t *testing.T) { os.ReadDir("/proc/self/fd") }`, ""},

		{"a foreign program", `func TestX(t *testing.T) { exec.Command("tmux", "ls") }`, foreign},
		{"a foreign program with a context", `func TestX(t *testing.T) { exec.CommandContext(ctx, "tmux") }`, foreign},
		{"a foreign program by its path", `func TestX(t *testing.T) { (&exec.Cmd{Path: "/bin/sleep"}).Start() }`, foreign},
		{"itself by its path", `func TestX(t *testing.T) { (&exec.Cmd{Path: os.Args[0]}).Start() }`, ""},
		{"a search", `func TestX(t *testing.T) { exec.LookPath("tmux") }`, foreign},
		{"a search for any", `func TestX(t *testing.T) { exec.LookPath(name) }`, foreign},
		{"a needed program", `func TestX(t *testing.T) { testkit.NeedTool(t, "tmux") }`, foreign},
		{"a needed git", `func TestX(t *testing.T) { testkit.NeedTool(t, "git") }`, ""},
		{"git", `func TestX(t *testing.T) { exec.Command("git", "init") }`, ""},
		{"the compiler", `func TestX(t *testing.T) { exec.Command("go", "build") }`, ""},
		{"the shell", `func TestX(t *testing.T) { exec.CommandContext(ctx, "/bin/sh", "-c", "exit 3") }`, ""},
		{"itself", `func TestX(t *testing.T) { exec.Command(os.Args[0]) }`, ""},

		{"an exception", "func TestX(t *testing.T) {\n\ttime.Sleep(1) // machine: the kernel gives no event\n}", ""},
		{"an exception without a reason", "func TestX(t *testing.T) {\n\ttime.Sleep(1) // machine:\n}", noReason},
		{"an exception without need", "func TestX(t *testing.T) {\n\tf() // machine: the kernel gives no event\n}", noExcuse},
		{"an exception a line above", "func TestX(t *testing.T) {\n\t// machine: the kernel gives no event\n\ttime.Sleep(1)\n}", noExcuse + "|" + sleeps},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := parse("x/x_test.go", `package x
import ("os"; "os/exec"; "runtime"; "runtime/debug"; "testing"; "testing/synctest"; "time"; "github.com/stretchr/testify/assert"; "`+module+`/internal/testkit")
`+c.body)
			require.NoError(t, err)
			var found []string
			for _, line := range machineDependencies([]source{s}) {
				_, what, _ := strings.Cut(line, ": ")
				found = append(found, what)
			}
			assert.Equal(t, c.want, strings.Join(found, "|"))
		})
	}
}

func TestMachineDependenciesAreFoundAcrossFilesAndNames(t *testing.T) {
	read := func(path, text string) source {
		s, err := parse(path, text)
		require.NoError(t, err)
		return s
	}
	user := read("x/x_test.go", `package x; func TestX(t *testing.T) { helper() }`)
	helper := read("x/helper_test.go", `package x; import clock "time"; func helper() { clock.Sleep(1) }`)
	assert.Equal(t, []string{"x/helper_test.go:1: " + sleeps}, machineDependencies([]source{user, helper}))
	assert.Empty(t, machineDependencies([]source{helper}), "no test calls the function")
	assert.NotEmpty(t, machineDependencies([]source{read("x/x.go", `package x; import "time"; func Wait() { time.Sleep(1) }`)}), "a package for tests exports the function")
}

func TestTiers(t *testing.T) {
	for line, isDefault := range map[string]bool{
		"": true, "//go:build unix": true, "//go:build !windows": true, "//go:build darwin": true, "//go:build race": true,
		"//go:build clients": false, "//go:build soak": false, "//go:build lint": false, "//go:build unix && clients": false,
		"//go:build clients || soak": false, "//go:build !soak": true,
	} {
		s, err := parse("x_test.go", cmp.Or(line, "// x")+"\n\npackage x\n")
		require.NoError(t, err)
		assert.Equal(t, isDefault, isDefaultTier(s), line)
	}
}
