//go:build linux

package main

import (
	"strings"
	"testing"
)

// spell puts a script together from pieces of at most step bytes.
func spell(s script, step int) string {
	var b strings.Builder
	for b.Len() < s.size() {
		b.Write(s.piece(b.Len(), min(s.size(), b.Len()+step)))
	}
	return b.String()
}

func TestScript(t *testing.T) {
	s := repeat([]byte("aabbcc"), 2, 5)
	s.tail = []byte("tail")
	for step := 1; step < 20; step++ {
		if got := spell(s, step); got != "aabbccaabbtail" {
			t.Errorf("in pieces of %d: %s", step, got)
		}
	}
}

func TestExpectation(t *testing.T) {
	const replies = "aabbccaabb"
	for step := 1; step <= len(replies); step++ {
		e := expectation{script: repeat([]byte("aabbcc"), 2, 5)}
		for from := 0; from < len(replies); from += step {
			if e.done() {
				t.Fatal("done too early")
			}
			if err := e.hear([]byte(replies[from:min(len(replies), from+step)])); err != nil {
				t.Fatal(err)
			}
			if want := min(len(replies), from+step) / 2; e.answered() != want {
				t.Errorf("answered %d, want %d", e.answered(), want)
			}
		}
		if !e.done() || e.hear([]byte("a")) == nil {
			t.Error("not done, or content with more than was expected")
		}
	}
	for _, wrong := range []string{"aaba", "b", "aabbccaabbc"} {
		e := expectation{script: repeat([]byte("aabbcc"), 2, 5)}
		if e.hear([]byte(wrong)) == nil {
			t.Errorf("%s was accepted", wrong)
		}
	}
}

func TestCollection(t *testing.T) {
	reply := string(frame("hello"))
	var c collection
	for i := range len(reply) {
		if c.done() {
			t.Fatal("done too early")
		}
		if err := c.hear([]byte(reply[i : i+1])); err != nil {
			t.Fatal(err)
		}
	}
	if !c.done() || string(c.bytes[c.header:]) != "hello" {
		t.Errorf("got %q", c.bytes)
	}
	if c.hear([]byte("C")) == nil {
		t.Error("content with more than one reply")
	}
}

func TestSelectWorkloads(t *testing.T) {
	if all, err := selectWorkloads(""); err != nil || len(all) != len(workloads) {
		t.Errorf("all: %d, %v", len(all), err)
	}
	if two, err := selectWorkloads("memory,start"); err != nil || len(two) != 2 || two[0].name != "memory" {
		t.Errorf("two: %v, %v", two, err)
	}
	if _, err := selectWorkloads("start,nothing"); err == nil {
		t.Error("an unknown name was accepted")
	}
}
