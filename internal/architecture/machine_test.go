//go:build lint

package architecture

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/build/constraint"
	"go/token"
	"maps"
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

// mayStart lists the programs that a test of the default tier may start by name. It may
// also start itself and what it has built, which have no constant name.
var mayStart = []string{"go", "sh", "/bin/sh"}

// The default tier passes on a slow, busy or bare machine: go test, without build tags.
func TestDefaultTierDependsOnNoMachine(t *testing.T) {
	packages := make(map[string][]source)
	for _, s := range sources(t) {
		helper := !s.isTest && matches(testOnly, s.dir()) && s.dir() != "internal/testkit" // which is what this check looks for
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
	foreign  = "needs a program that a machine may lack: use sh, go or the test binary itself, or move the test to the tag clients"
	noReason = "// machine: needs a reason"
	noExcuse = "// machine: excuses nothing here; remove it"
)

// A node is code whose calls decide where it runs: a function, a method, a function
// literal in a variable, or the initialisation of package variables.
type node struct {
	refs []ref
	uses []use
	// real says that the code runs outside of a synctest bubble, too.
	real bool
}

// A ref is a name that a node mentions.
type ref struct {
	name   string
	method bool  // behind a dot
	local  *node // the variable's literal, if it is one
	bubble bool  // within a bubble that the node makes
}

// A use is something that may depend on the machine.
type use struct {
	at     token.Pos
	in     source
	what   string
	bubble bool
}

// checker finds what the test files of one directory depend on.
type checker struct {
	functions map[string]*node   // by name
	methods   map[string][]*node // by name
	ofType    map[string][]*node // methods by the name of their receiver's type
	names     map[*node]string   // of methods
	roots     []*node
	all       []*node
	bubblers  map[bubbler]bool
	fields    []field
}

// A bubbler is a parameter that a function calls in a bubble alone.
type bubbler struct {
	function  string
	parameter int
}

// A field is a function literal in a table.
type field struct {
	name    string
	literal *node
	table   ref // to the literal, where the table stands
	in      *node
}

// machineDependencies lists what the files of one directory depend on.
func machineDependencies(files []source) (list []string) {
	c := &checker{bubblers: make(map[bubbler]bool)}
	for known := -1; known < len(c.bubblers); { // until no wrapper of synctest.Test is new
		known = len(c.bubblers)
		c.read(files)
	}
	for _, f := range c.fields { // the tests call it by the field's name, or others do where the table stands
		if c.isCalled(f.name) {
			c.methods[f.name] = append(c.methods[f.name], f.literal)
		} else {
			f.in.refs = append(f.in.refs, f.table)
		}
	}
	for queue := c.roots; len(queue) > 0; queue = queue[1:] {
		n := queue[0]
		if n.real {
			continue
		}
		n.real = true
		for _, r := range n.refs {
			if !r.bubble {
				queue = append(queue, c.targets(r)...)
			}
		}
	}

	type line struct {
		file string
		line int
	}
	excused := make(map[line]bool)
	for _, s := range files {
		for at, reason := range excuses(s) {
			excused[line{s.path, at}] = false
			if reason == "" {
				list = append(list, fmt.Sprintf("%s:%d: %s", s.path, at, noReason))
			}
		}
	}
	for _, n := range c.all {
		for _, u := range n.uses {
			if inTime := u.what == sleeps || u.what == compares; inTime && (u.bubble || !n.real) {
				continue
			}
			at := line{u.in.path, u.in.set.Position(u.at).Line}
			if _, ok := excused[at]; ok {
				excused[at] = true
				continue
			}
			list = append(list, u.in.at(u.at)+": "+u.what)
		}
	}
	for at, used := range excused {
		if !used {
			list = append(list, fmt.Sprintf("%s:%d: %s", at.file, at.line, noExcuse))
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// excuses returns the reasons of the comments "// machine: REASON" by line.
func excuses(s source) map[int]string {
	found := make(map[int]string)
	for _, group := range s.file.Comments {
		for _, c := range group.List {
			if reason, ok := strings.CutPrefix(c.Text, "// machine:"); ok {
				found[s.set.Position(c.Pos()).Line] = strings.TrimSpace(reason)
			}
		}
	}
	return found
}

// targets returns the nodes that a name may mean. A type means those of its methods that
// no code of the tests calls by name: others call them through an interface.
func (c *checker) targets(r ref) (list []*node) {
	if r.local != nil {
		return []*node{r.local}
	}
	if r.method {
		return c.methods[r.name]
	}
	if f := c.functions[r.name]; f != nil {
		list = append(list, f)
	}
	for _, m := range c.ofType[r.name] {
		if !c.isCalled(c.names[m]) {
			list = append(list, m)
		}
	}
	return list
}

// isCalled reports whether the tests mention a method by its name.
func (c *checker) isCalled(method string) bool {
	return slices.ContainsFunc(c.all, func(n *node) bool {
		return slices.ContainsFunc(n.refs, func(r ref) bool { return r.method && r.name == method })
	})
}

// read makes the nodes of the files.
func (c *checker) read(files []source) {
	*c = checker{
		functions: make(map[string]*node), methods: make(map[string][]*node), ofType: make(map[string][]*node),
		names: make(map[*node]string), bubblers: c.bubblers,
	}
	for _, s := range files {
		w := &walker{checker: c, source: s, imports: importNames(s)}
		for _, d := range s.file.Decls {
			n := &node{}
			c.all = append(c.all, n)
			w.locals = make(map[string]*node)
			w.params = make(map[string]*parameter)
			w.declaration = ""
			switch d := d.(type) {
			case *ast.FuncDecl:
				name := d.Name.Name
				w.declaration = name
				if d.Recv != nil {
					on := receiver(d.Recv.List[0].Type)
					w.declaration = on + "." + name
					c.methods[name] = append(c.methods[name], n)
					c.ofType[on] = append(c.ofType[on], n)
					c.names[n] = name
				} else {
					c.functions[name] = n
				}
				if d.Recv == nil && isEntry.MatchString(name) || !s.isTest && d.Name.IsExported() {
					c.roots = append(c.roots, n)
				}
				if d.Body == nil {
					break
				}
				w.declareLocals(d.Body)
				w.function(w.declaration, n, d.Type, d.Body, false)
			case *ast.GenDecl:
				if d.Tok == token.VAR {
					c.roots = append(c.roots, n)
					w.walk(n, d, false)
				}
			}
		}
	}
}

var isEntry = regexp.MustCompile(`^(Test|Benchmark|Fuzz|Example)|^init$`)

// receiver returns the name of the type of a receiver.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// importNames returns the import paths of a file by the names that it uses for them.
func importNames(s source) map[string]string {
	names := make(map[string]string)
	for _, spec := range s.file.Imports {
		path, _ := strconv.Unquote(spec.Path.Value)
		name := path[strings.LastIndex(path, "/")+1:]
		if spec.Name != nil {
			name = spec.Name.Name
		}
		names[name] = path
	}
	return names
}

// A walker reads one declaration at a time.
type walker struct {
	*checker
	source      source
	imports     map[string]string
	declaration string           // the name of the function, with its receiver's type
	locals      map[string]*node // literals in variables of the function
	params      map[string]*parameter
}

// A parameter is a function that the code gets that is read.
type parameter struct {
	index  int
	inside int // mentions in a bubble
	real   int // mentions elsewhere
}

// function walks a function, and notes which of its parameters it calls in a bubble alone.
func (w *walker) function(name string, n *node, signature *ast.FuncType, body ast.Node, bubble bool) {
	outer := w.params
	w.params = maps.Clone(outer)
	defer func() { w.params = outer }()
	var own []*parameter
	index := 0
	for _, field := range signature.Params.List {
		for _, param := range field.Names {
			delete(w.params, param.Name)
			if _, ok := field.Type.(*ast.FuncType); ok {
				p := &parameter{index: index}
				w.params[param.Name] = p
				own = append(own, p)
			}
			index++
		}
	}
	w.walk(n, body, bubble)
	for _, p := range own {
		if p.inside > 0 && p.real == 0 {
			w.bubblers[bubbler{name, p.index}] = true
		}
	}
}

// localName is the name of a literal in a variable among all functions.
func (w *walker) localName(variable string) string { return w.declaration + ": " + variable }

// declareLocals makes a node of each literal that a variable of the function holds.
func (w *walker) declareLocals(body ast.Node) {
	declare := func(name, value ast.Node) {
		ident, _ := name.(*ast.Ident)
		if _, ok := value.(*ast.FuncLit); ok && ident != nil && w.locals[ident.Name] == nil {
			n := &node{}
			w.locals[ident.Name] = n
			w.all = append(w.all, n)
		}
	}
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for i := range n.Lhs {
				if len(n.Lhs) == len(n.Rhs) {
					declare(n.Lhs[i], n.Rhs[i])
				}
			}
		case *ast.ValueSpec:
			for i := range n.Names {
				if len(n.Names) == len(n.Values) {
					declare(n.Names[i], n.Values[i])
				}
			}
		}
		return true
	})
}

// walk notes the names and uses in a part of a node. bubble says that it runs in a
// bubble that the node makes.
func (w *walker) walk(n *node, part ast.Node, bubble bool) {
	ast.Inspect(part, func(x ast.Node) bool {
		switch x := x.(type) {
		case *ast.AssignStmt:
			for i, value := range x.Rhs {
				var name ast.Expr
				if len(x.Lhs) == len(x.Rhs) {
					name = x.Lhs[i]
				}
				w.value(n, name, value, bubble)
			}
			for _, target := range x.Lhs {
				if ident, ok := target.(*ast.Ident); !ok || w.locals[ident.Name] == nil { // an assignment calls nothing
					w.walk(n, target, bubble)
				}
			}
			return false
		case *ast.ValueSpec:
			for i, value := range x.Values {
				var name ast.Expr
				if len(x.Names) == len(x.Values) {
					name = x.Names[i]
				}
				w.value(n, name, value, bubble)
			}
			if x.Type != nil {
				w.walk(n, x.Type, bubble)
			}
			return false
		case *ast.CompositeLit:
			if names := tableFields(x.Type); names != nil {
				w.table(n, x, names, bubble)
				return false
			}
			w.judgeCommand(n, x, bubble)
		case *ast.CallExpr:
			w.judgeCall(n, x, bubble)
			w.walk(n, x.Fun, bubble)
			for i, arg := range x.Args {
				w.walk(n, arg, bubble || w.isBubble(x.Fun, i))
			}
			return false
		case *ast.CommClause: // a case of a select may be a deadline
			if comm, ok := x.Comm.(*ast.ExprStmt); ok {
				w.walk(n, comm.X, bubble)
			} else if x.Comm != nil {
				w.walk(n, x.Comm, bubble)
			}
			for _, statement := range x.Body {
				w.walk(n, statement, bubble)
			}
			return false
		case *ast.ExprStmt:
			if isAfter(w, x.X) {
				w.use(n, x, sleeps, bubble)
			}
		case *ast.KeyValueExpr:
			if _, ok := x.Key.(*ast.Ident); !ok {
				w.walk(n, x.Key, bubble)
			}
			w.walk(n, x.Value, bubble)
			return false
		case *ast.SelectorExpr:
			w.judgeName(n, x, bubble)
			if from, ok := x.X.(*ast.Ident); !ok || w.imports[from.Name] == "" {
				n.refs = append(n.refs, ref{name: x.Sel.Name, method: true, bubble: bubble})
				w.walk(n, x.X, bubble)
			}
			return false
		case *ast.Ident:
			if p := w.params[x.Name]; p != nil {
				if bubble {
					p.inside++
				} else {
					p.real++
				}
			}
			n.refs = append(n.refs, ref{name: x.Name, local: w.locals[x.Name], bubble: bubble})
		case *ast.BasicLit:
			if x.Kind == token.STRING {
				w.judgeText(n, x, bubble)
			}
		}
		return true
	})
}

// tableFields returns the names of the fields in the rows of a table: a slice or a map of
// structs without a name.
func tableFields(e ast.Expr) (names []string) {
	switch x := e.(type) {
	case *ast.ArrayType:
		e = x.Elt
	case *ast.MapType:
		e = x.Value
	}
	row, ok := e.(*ast.StructType)
	if !ok {
		return nil
	}
	for _, field := range row.Fields.List {
		for _, name := range field.Names {
			names = append(names, name.Name)
		}
	}
	return names
}

// table walks a table. A function in one of its rows is a node of its own.
func (w *walker) table(n *node, table *ast.CompositeLit, names []string, bubble bool) {
	for _, row := range table.Elts {
		if pair, ok := row.(*ast.KeyValueExpr); ok {
			w.walk(n, pair.Key, bubble)
			row = pair.Value
		}
		fields, ok := row.(*ast.CompositeLit)
		if !ok {
			w.walk(n, row, bubble)
			continue
		}
		for i, value := range fields.Elts {
			name := ""
			if pair, ok := value.(*ast.KeyValueExpr); ok {
				value = pair.Value
				if key, ok := pair.Key.(*ast.Ident); ok {
					name = key.Name
				}
			} else if i < len(names) {
				name = names[i]
			}
			literal, ok := value.(*ast.FuncLit)
			if !ok || name == "" {
				w.walk(n, value, bubble)
				continue
			}
			f := &node{}
			w.all = append(w.all, f)
			w.fields = append(w.fields, field{name, f, ref{local: f, bubble: bubble}, n})
			w.function("", f, literal.Type, literal.Body, false)
		}
	}
}

// value walks a value that a variable gets: a literal is a node of its own.
func (w *walker) value(n *node, name, value ast.Expr, bubble bool) {
	ident, _ := name.(*ast.Ident)
	if literal, ok := value.(*ast.FuncLit); ok && ident != nil && w.locals[ident.Name] != nil {
		w.function(w.localName(ident.Name), w.locals[ident.Name], literal.Type, literal.Body, bubble)
		return
	}
	w.walk(n, value, bubble)
}

// isBubble reports whether a function calls its argument in a bubble.
func (w *walker) isBubble(function ast.Expr, argument int) bool {
	switch f := function.(type) {
	case *ast.SelectorExpr:
		return w.is(f, "testing/synctest", "Test")
	case *ast.Ident:
		name := f.Name
		if w.locals[name] != nil {
			name = w.localName(name)
		}
		return w.bubblers[bubbler{name, argument}]
	}
	return false
}

// is reports whether an expression is one of the names of a package.
func (w *walker) is(e ast.Expr, path string, names ...string) bool {
	sel, ok := e.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	from, ok := sel.X.(*ast.Ident)
	return ok && w.imports[from.Name] == path && slices.Contains(names, sel.Sel.Name)
}

func (w *walker) use(n *node, at ast.Node, what string, bubble bool) {
	n.uses = append(n.uses, use{at: at.Pos(), in: w.source, what: what, bubble: bubble})
}

// isAfter reports whether an expression waits on time.After alone.
func isAfter(w *walker, e ast.Expr) bool {
	receive, ok := e.(*ast.UnaryExpr)
	if !ok || receive.Op != token.ARROW {
		return false
	}
	call, ok := receive.X.(*ast.CallExpr)
	return ok && w.is(call.Fun, "time", "After")
}

// judgeName notes a function of the standard library that depends on the machine,
// whether it is called or passed on.
func (w *walker) judgeName(n *node, x *ast.SelectorExpr, bubble bool) {
	switch {
	case w.is(x, "time", "Sleep"), w.is(x, "github.com/stretchr/testify/assert", "Never", "Neverf"), w.is(x, "github.com/stretchr/testify/require", "Never", "Neverf"):
		w.use(n, x, sleeps, bubble)
	case w.is(x, "time", "Since", "Until"):
		w.use(n, x, compares, bubble)
	case w.is(x, "runtime", "ReadMemStats"), w.is(x, "runtime/debug", "ReadGCStats"), w.is(x, "runtime/metrics", "Read"):
		w.use(n, x, memory, bubble)
	case w.is(x, module+"/internal/testkit", "NeedTool"):
		w.use(n, x, foreign, bubble)
	}
	if call, ok := x.X.(*ast.CallExpr); ok && x.Sel.Name == "Sub" && w.is(call.Fun, "time", "Now") {
		w.use(n, x, compares, bubble)
	}
}

// judgeCall notes the start of a program, and the search for one.
func (w *walker) judgeCall(n *node, call *ast.CallExpr, bubble bool) {
	at := 0
	switch {
	case w.is(call.Fun, "os/exec", "CommandContext"):
		at = 1
	case w.is(call.Fun, "os/exec", "Command"), w.is(call.Fun, "os/exec", "LookPath"):
	default:
		return
	}
	if len(call.Args) <= at {
		return
	}
	name, isConstant := constantText(call.Args[at])
	looks := w.is(call.Fun, "os/exec", "LookPath")
	if isConstant && !slices.Contains(mayStart, name) || looks && !isConstant {
		w.use(n, call, foreign, bubble)
	}
}

// judgeCommand notes an exec.Cmd with the path of a program.
func (w *walker) judgeCommand(n *node, x *ast.CompositeLit, bubble bool) {
	if !w.is(x.Type, "os/exec", "Cmd") {
		return
	}
	for _, field := range x.Elts {
		pair, ok := field.(*ast.KeyValueExpr)
		if !ok {
			continue
		}
		key, _ := pair.Key.(*ast.Ident)
		if path, isConstant := constantText(pair.Value); key != nil && key.Name == "Path" && isConstant && !slices.Contains(mayStart, path) {
			w.use(n, x, foreign, bubble)
		}
	}
}

// judgeText notes a path at which the system reports memory or load.
func (w *walker) judgeText(n *node, literal *ast.BasicLit, bubble bool) {
	text, _ := constantText(literal)
	switch text {
	case "/proc/self/status", "/proc/self/statm", "/proc/self/smaps", "/proc/self/smaps_rollup", "/proc/meminfo":
		w.use(n, literal, memory, bubble)
	case "/proc/loadavg", "/proc/stat", "/proc/cpuinfo":
		w.use(n, literal, load, bubble)
	}
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
		{"a wrapper that also calls it", `func TestX(t *testing.T) { bubble(t, func(*testing.T) { time.Sleep(1) }) }; func bubble(t *testing.T, f func(*testing.T)) { f(t); synctest.Test(t, f) }`, sleeps},
		{"a local wrapper", `func TestX(t *testing.T) { run := func(f func()) { synctest.Test(t, func(*testing.T) { f() }) }; run(func() { time.Sleep(1) }) }`, ""},
		{"a local function that calls it outside", `func TestX(t *testing.T) { run := func(f func()) { f() }; run(func() { time.Sleep(1) }) }`, sleeps},
		{"wrappers of the same name", `func TestX(t *testing.T) { run := func(f func()) { synctest.Test(t, f) }; run(func() {}) }; func TestY(t *testing.T) { run := func(f func()) { f() }; run(func() { time.Sleep(1) }) }`, sleeps},
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

		{"a foreign program", `func TestX(t *testing.T) { exec.Command("git", "init") }`, foreign},
		{"a foreign program with a context", `func TestX(t *testing.T) { exec.CommandContext(ctx, "git") }`, foreign},
		{"a foreign program by its path", `func TestX(t *testing.T) { (&exec.Cmd{Path: "/bin/sleep"}).Start() }`, foreign},
		{"itself by its path", `func TestX(t *testing.T) { (&exec.Cmd{Path: os.Args[0]}).Start() }`, ""},
		{"a search", `func TestX(t *testing.T) { exec.LookPath("tmux") }`, foreign},
		{"a search for any", `func TestX(t *testing.T) { exec.LookPath(name) }`, foreign},
		{"a needed program", `func TestX(t *testing.T) { testkit.NeedTool(t, "tmux") }`, foreign},
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
	assert.Empty(t, machineDependencies([]source{helper}), "no test calls it")
	assert.NotEmpty(t, machineDependencies([]source{read("x/x.go", `package x; import "time"; func Wait() { time.Sleep(1) }`)}), "a package for tests exports it")
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
