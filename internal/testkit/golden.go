// Package testkit helps tests with golden files, file trees, members of JSON messages, reports of
// goroutines, other processes, and programs that may not be installed.
package testkit

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Golden files. With DUET_UPDATE_GOLDEN=1 in the environment a comparison writes the file instead:
//
// 	DUET_UPDATE_GOLDEN=1 make test
//
// Then read the difference in version control.

// updateVariable names the environment variable that makes tests write their golden files.
const updateVariable = "DUET_UPDATE_GOLDEN"

// updating reports whether the tests write their golden files.
func updating() bool { return os.Getenv(updateVariable) == "1" }

// GoldenBytes requires that the file at path holds got.
func GoldenBytes(t testing.TB, path string, got []byte) {
	t.Helper()
	want, err := os.ReadFile(path)
	switch {
	case err == nil && string(want) == string(got):
		return
	case updating():
		rewrite(t, path, got)
	case err != nil:
		t.Fatalf("cannot read the golden file: %v; run the test with %s=1 to write it; got:\n%q", err, updateVariable, got)
	default:
		t.Fatalf("the result differs from %s; run the test with %s=1 to rewrite the file; the difference:\nwant: %.4000q\ngot:  %.4000q",
			path, updateVariable, differing(want, got), differing(got, want))
	}
}

// GoldenBlock requires that the fenced block of the Markdown file at path that follows
// marker, on a line of its own, holds got.
func GoldenBlock(t testing.TB, path, marker string, got []byte) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const fence = "```\n"
	before, rest, found := strings.Cut(string(text), marker+"\n"+fence)
	_, after, ends := strings.Cut(rest, "\n"+fence)
	if !found || !ends {
		t.Fatalf("%s has no block behind %q", path, marker)
	}
	GoldenBytes(t, path, []byte(before+marker+"\n"+fence+string(got)+fence+after))
}

// differing is the part of a that b has not, and some of what is around it.
func differing(a, b []byte) []byte {
	const around = 100
	from, tail := 0, 0
	for from < min(len(a), len(b)) && a[from] == b[from] {
		from++
	}
	for tail < min(len(a), len(b))-from && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	return a[max(0, from-around):min(len(a), len(a)-tail+around)]
}

func rewrite(t testing.TB, path string, got []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, got, 0o644); err != nil {
		t.Fatal(err)
	}
	t.Logf("rewrote %s", path)
}

// Parts of JSON messages.

// JSONMember is the value at a path of an object, such as error.code, as it is written
// there; nil if there is none.
func JSONMember[O ~string | ~[]byte](t testing.TB, object O, path string) json.RawMessage {
	t.Helper()
	at := json.RawMessage(object)
	for name := range strings.SplitSeq(path, ".") {
		var members map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(at, &members), "%s", object)
		at = members[name]
	}
	return at
}

// JSONAs is the [Member] at a path, which has to be there, and a T.
func JSONAs[T any, O ~string | ~[]byte](t testing.TB, object O, path string) T {
	t.Helper()
	raw := JSONMember(t, object, path)
	require.NotNil(t, raw, "%s in %s", path, object)
	var value any
	require.NoError(t, json.Unmarshal(raw, &value))
	v, ok := value.(T)
	require.True(t, ok, "%s in %s", path, object)
	return v
}

// Programs that a machine may lack.

// NeedTool returns the path of a program. Without it the test is skipped, and fails with CI=true.
func NeedTool(t testing.TB, name string) (path string) {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		SkipMissing(t, name+" is not installed")
	}
	return path
}

// SkipMissing skips a test whose program or feature is missing on this machine. With CI=true it
// fails the test instead: a machine that is made for tests must leave none out.
func SkipMissing(t testing.TB, why string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(why)
	}
	t.Skip(why)
}

// Fill sets every field of a value to a value of its own, made from n, which it counts up.
// Interfaces stay nil.
func Fill(v reflect.Value, n *int) {
	*n++
	switch v.Type() {
	case reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Unix(0, int64(*n)).UTC()))
		return
	case reflect.TypeFor[json.RawMessage]():
		v.Set(reflect.ValueOf(json.RawMessage(fmt.Sprintf(`{"n":%d.50,"<":""}`, *n))))
		return
	case reflect.TypeFor[map[string]json.RawMessage]():
		v.Set(reflect.ValueOf(map[string]json.RawMessage{"more": json.RawMessage("1.50")}))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprintf("text <%d>", *n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(*n))
	case reflect.Uint32:
		v.SetUint(uint64(*n))
	case reflect.Float64:
		v.SetFloat(float64(*n) + 0.5)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		Fill(v.Elem(), n)
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte{0, 0xff})
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		Fill(v.Index(0), n)
		Fill(v.Index(1), n)
	case reflect.Map:
		v.Set(reflect.ValueOf(map[string]string{"k": fmt.Sprint(*n)}))
	case reflect.Struct:
		for _, field := range v.Fields() {
			Fill(field, n)
		}
	case reflect.Interface:
	default:
		panic(fmt.Sprintf("no value for a %s", v.Type()))
	}
}
