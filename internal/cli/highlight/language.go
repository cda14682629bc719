package highlight

// A language is what is looked for in its code.
type language struct {
	keywords, constants string // words
	lineComments        []string
	delimited           []delimited // the longer beginnings first
	wordComments        bool        // a line comment begins where a word could
	chars               bool        // 'x' is a character, and ' alone is something else
	variables           bool        // $NAME
	anyCase             bool        // words may be upper case
	lisp                bool        // words have more characters
	keys                bool        // lines begin with a name and a colon or equals sign
	sections            bool        // and there are [sections]
	markup              bool        // it has tags
}

// A delimited is a comment or a text between two marks.
type delimited struct {
	open, close string
	color       string
	escapes     bool // a backslash hides close
	lines       bool // it may go on in the next line
}

var (
	quoted      = delimited{`"`, `"`, text, true, false}
	quotedLines = delimited{`"`, `"`, text, true, true}
	single      = delimited{`'`, `'`, text, true, false}
	rawSingle   = delimited{`'`, `'`, text, false, true}
	cComment    = delimited{"/*", "*/", comment, false, true}
)

const (
	cWords     = "break case const continue default do else enum extern for goto if inline register return sizeof static struct switch typedef union volatile while"
	cTypes     = " bool char double float int long short signed size_t ssize_t unsigned void int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t"
	javaWords  = "abstract assert break case catch class const continue default do else enum extends final finally for if implements import instanceof interface native new package private protected public record return sealed static super switch synchronized this throw throws transient try var void volatile while yield boolean byte char double float int long short"
	jsWords    = "abstract any as async await break case catch class const continue debugger declare default delete do else enum export extends finally for from function get if implements import in instanceof interface keyof let namespace never new number of package private protected public readonly return satisfies set static string super switch this throw try type typeof unknown var void while with yield"
	shellWords = "alias break case cd continue declare do done echo elif else esac eval exec exit export fi for function if in local printf read readonly return select set shift source then time trap unset until while"
)

// find is a language by one of its names, or nil. It is a function, and no table, so
// that nothing is made when the program starts.
func find(name string) *language {
	cLike := func(keywords, constants string) *language {
		return &language{keywords: keywords, constants: constants, lineComments: []string{"//"}, delimited: []delimited{cComment, quoted}, chars: true}
	}
	switch name {
	case "go", "golang":
		l := cLike("break case chan const continue default defer else fallthrough for func go goto if import interface map package range return select struct switch type var", "true false nil iota")
		l.delimited = append(l.delimited, delimited{"`", "`", text, false, true})
		return l
	case "c", "h":
		return cLike(cWords+cTypes, "NULL true false")
	case "cpp", "c++", "cc", "cxx", "hpp", "objc", "objective-c":
		return cLike(cWords+cTypes+" auto catch class constexpr delete explicit final friend mutable namespace new noexcept operator override private protected public template this throw try typename using virtual concept requires co_await co_return co_yield", "NULL nullptr true false")
	case "java":
		return cLike(javaWords, "true false null")
	case "kotlin", "kt":
		return cLike("as break by catch class companion constructor continue data do else enum extends final finally for fun if import in inline interface internal is lateinit object open operator override package private protected public return sealed super suspend this throw try typealias val var vararg when while", "true false null")
	case "scala":
		return cLike("abstract case catch class def do else enum extends final finally for given if implicit import lazy match new object override package private protected return sealed super then this throw trait try type using val var while with yield", "true false null")
	case "swift":
		return cLike("as associatedtype async await break case catch class continue default defer deinit do else enum extension fallthrough fileprivate final for func guard if import in init inout internal is lazy let mutating open override private protocol public repeat rethrows return self static struct subscript super switch throw throws try typealias var weak where while", "true false nil")
	case "csharp", "cs", "c#":
		return cLike(javaWords+" as async await base checked decimal delegate event explicit extern fixed foreach get goto implicit in init internal is lock namespace object operator out override params partial readonly ref sbyte set sizeof string struct typeof uint ulong unchecked unsafe ushort using value virtual when where", "true false null")
	case "rust", "rs":
		l := cLike("as async await break const continue crate dyn else enum extern fn for if impl in let loop match mod move mut pub ref return self Self static struct super trait type union unsafe use where while", "true false None Some Ok Err")
		l.delimited = []delimited{cComment, quotedLines}
		return l
	case "zig":
		return cLike("align and anyerror break catch comptime const continue defer else enum errdefer error export extern fn for if inline or orelse pub return struct switch test try union unreachable usingnamespace var while", "true false null undefined")
	case "js", "javascript", "jsx", "mjs", "cjs", "ts", "typescript", "tsx":
		return &language{
			keywords: jsWords, constants: "true false null undefined NaN Infinity", lineComments: []string{"//"},
			delimited: []delimited{cComment, quoted, single, {"`", "`", text, true, true}},
		}
	case "php":
		return &language{
			keywords:  "abstract and array as break case catch class clone const continue declare default do echo else elseif enum extends final finally fn for foreach function global if implements include instanceof interface isset list match namespace new or print private protected public readonly require require_once return static switch throw trait try unset use var while yield",
			constants: "true false null TRUE FALSE NULL", lineComments: []string{"//", "#"}, delimited: []delimited{cComment, quotedLines, {`'`, `'`, text, true, true}}, variables: true,
		}
	case "py", "python", "python3", "pyi", "starlark", "bzl":
		return &language{
			keywords:  "and as assert async await break case class continue def del elif else except finally for from global if import in is lambda match nonlocal not or pass raise return try while with yield",
			constants: "True False None self cls", lineComments: []string{"#"},
			delimited: []delimited{{`"""`, `"""`, text, true, true}, {`'''`, `'''`, text, true, true}, quoted, single},
		}
	case "rb", "ruby":
		return &language{
			keywords:  "alias and begin break case class def defined do else elsif end ensure extend for if in include module next not or private protected public raise redo require require_relative rescue retry return super then undef unless until when while yield attr_accessor attr_reader attr_writer",
			constants: "true false nil self", lineComments: []string{"#"}, wordComments: true, delimited: []delimited{quotedLines, {`'`, `'`, text, true, true}},
		}
	case "console", "shell-session": // what is printed there has apostrophes
		return &language{keywords: shellWords, lineComments: []string{"# "}, wordComments: true, variables: true, delimited: []delimited{quoted}}
	case "sh", "bash", "zsh", "shell", "fish":
		return &language{
			keywords: shellWords, constants: "true false", lineComments: []string{"#"}, wordComments: true, variables: true,
			delimited: []delimited{quotedLines, rawSingle},
		}
	case "dockerfile", "docker":
		return &language{
			keywords: "add arg as cmd copy entrypoint env expose from healthcheck label onbuild run shell stopsignal user volume workdir", anyCase: true,
			lineComments: []string{"#"}, wordComments: true, variables: true, delimited: []delimited{quoted, rawSingle},
		}
	case "make", "makefile", "mk":
		return &language{
			keywords: "define else endef endif export ifdef ifeq ifndef ifneq include override", lineComments: []string{"#"}, wordComments: true, variables: true,
			delimited: []delimited{quoted, {`'`, `'`, text, false, false}}, keys: true,
		}
	case "sql", "postgres", "postgresql", "mysql", "sqlite":
		return &language{
			keywords:  "add all alter and any as asc begin between by case cast check collate column commit conflict constraint create cross cte default delete desc distinct do drop else end except exists explain foreign from full group having if in index inner insert intersect into is join key left like limit match natural not offset on or order outer over partition pragma primary references replace returning right rollback row select set table temp then transaction trigger union unique update using values view virtual when where window with without",
			constants: "true false null current_timestamp integer int bigint text blob real numeric varchar char boolean timestamp date", anyCase: true,
			lineComments: []string{"--"}, delimited: []delimited{cComment, {`'`, `'`, text, false, true}, quoted},
		}
	case "json", "jsonc", "json5", "jsonl", "ndjson":
		return &language{constants: "true false null", lineComments: []string{"//"}, delimited: []delimited{cComment, quoted}}
	case "yaml", "yml":
		return &language{constants: "true false null yes no on off", lineComments: []string{"#"}, wordComments: true, delimited: []delimited{quoted, {`'`, `'`, text, false, false}}, keys: true}
	case "toml", "ini", "conf", "cfg", "properties", "dotenv", "env", "systemd", "gitconfig":
		return &language{
			constants: "true false yes no on off", lineComments: []string{"#", ";"}, wordComments: true, keys: true, sections: true,
			delimited: []delimited{{`"""`, `"""`, text, true, true}, {`'''`, `'''`, text, false, true}, quoted, {`'`, `'`, text, false, false}},
		}
	case "html", "xml", "svg", "xhtml", "vue", "svelte", "plist":
		return &language{markup: true, delimited: []delimited{{`"`, `"`, text, false, true}, {`'`, `'`, text, false, true}}}
	case "css", "scss", "less":
		return &language{
			keywords: "important media import keyframes supports font-face include mixin use", constants: "none auto inherit initial unset",
			delimited: []delimited{cComment, quoted, single}, lineComments: []string{"//"}, wordComments: true, keys: true,
		}
	case "lua":
		return &language{
			keywords:  "and break do else elseif end for function goto if in local not or repeat return then until while",
			constants: "true false nil self", lineComments: []string{}, delimited: []delimited{{"--[[", "]]", comment, false, true}, {"[[", "]]", text, false, true}, {"--", "\n", comment, false, false}, quoted, single},
		}
	case "elisp", "emacs-lisp", "lisp", "common-lisp", "cl", "scheme", "racket", "clojure", "clj":
		return &language{
			keywords:  "and case catch cond cond-> condition-case declare def define defn defmacro defun defvar defconst defcustom defface defstruct cl-defstruct cl-defun defmethod cl-defmethod cl-defgeneric defalias do dolist dotimes fn if if-let if-let* interactive lambda let let* letrec loop ns or pcase pcase-let prog1 progn quote require provide save-excursion save-restriction setf setq setq-local unless unwind-protect use-package when when-let when-let* while with-current-buffer with-temp-buffer cl-loop cl-flet cl-labels -> ->>",
			constants: "nil t true false", lineComments: []string{";"}, delimited: []delimited{quotedLines}, lisp: true,
		}
	case "haskell", "hs", "elm", "ocaml", "ml":
		return &language{
			keywords:  "as case class data default deriving do else end exception forall fun function foreign hiding if import in infix infixl infixr instance let match mod module newtype of open qualified rec sig struct then try type val when where with",
			constants: "True False Nothing Just true false", lineComments: []string{"-- "}, chars: true, delimited: []delimited{{"{-", "-}", comment, false, true}, {"(*", "*)", comment, false, true}, quoted},
		}
	case "elixir", "ex", "exs":
		return &language{
			keywords:  "after alias and case catch cond def defimpl defmacro defmodule defp defprotocol defstruct do else end fn for if import in not or quote raise receive require rescue try unless unquote use when with",
			constants: "true false nil", lineComments: []string{"#"}, wordComments: true, delimited: []delimited{{`"""`, `"""`, text, true, true}, quotedLines},
		}
	}
	return nil
}
