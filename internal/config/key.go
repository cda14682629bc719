package config

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"time"
	"unicode"
)

const (
	maxKey         = 64 << 10         // bytes of a key
	keyCommandTime = 10 * time.Second // for a command that prints a key
)

// Key is the source of a service's key: exactly one of the fields is set.
type Key struct {
	Env     string   // an environment variable
	Command []string // a program that prints the key
	File    string   // a file with the key, absolute
}

// source names the one field that is set.
func (k Key) source() string {
	switch {
	case k.Env != "":
		return "env"
	case len(k.Command) > 0:
		return "command"
	}
	return "file"
}

// Fetch returns the key, without the white space around it. A command has 10 s and gets no
// input. A file that others may read is used, with a warning in the log. No error quotes file
// content or output. getenv nil means os.Getenv.
func (k Key) Fetch(ctx context.Context, getenv func(string) string) (string, error) {
	if getenv == nil {
		getenv = os.Getenv
	}
	var value string
	var err error
	switch {
	case k.Env != "":
		if value = getenv(k.Env); value == "" {
			return "", fmt.Errorf("getting the key: the environment variable %s is not set", k.Env)
		}
	case len(k.Command) > 0:
		value, err = k.run(ctx, keyCommandTime)
	case k.File != "":
		value, err = k.read(ctx)
	default:
		err = errors.New("no env, command or file is configured for it")
	}
	if err != nil {
		return "", fmt.Errorf("getting the key: %w", err)
	}
	value = strings.TrimSpace(value)
	switch name := k.source(); {
	case value == "":
		return "", fmt.Errorf("getting the key: its %s gave nothing", name)
	case strings.ContainsFunc(value, unicode.IsControl):
		return "", fmt.Errorf("getting the key: its %s gave more than one line", name)
	}
	return value, nil
}

// run returns the output of the command within limit.
func (k Key) run(ctx context.Context, limit time.Duration) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, k.Command[0], k.Command[1:]...)
	out := &capped{most: maxKey}
	cmd.Stdout = out
	ownGroup(cmd)
	// A grandchild that keeps the pipe open must not block this process.
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return "", fmt.Errorf("the command %s took longer than %v", k.Command[0], limit)
	case ctx.Err() != nil:
		return "", ctx.Err()
	case out.over:
		return "", fmt.Errorf("the command %s printed more than %d bytes", k.Command[0], maxKey)
	case errors.As(err, &exit):
		return "", fmt.Errorf("the command %s failed: %s", k.Command[0], exit.ProcessState)
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		return "", err
	}
	return out.buffer.String(), nil
}

// capped keeps the first bytes that are written to it.
type capped struct {
	buffer bytes.Buffer
	most   int
	over   bool
}

func (c *capped) Write(p []byte) (int, error) {
	keep := min(len(p), c.most-c.buffer.Len())
	c.over = c.over || keep < len(p)
	c.buffer.Write(p[:keep])
	return len(p), nil
}

func (k Key) read(ctx context.Context) (string, error) {
	info, err := os.Stat(k.File)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s is no regular file", k.File)
	}
	if readByOthers(info) {
		slog.WarnContext(ctx, "a key's file can be read by other users: chmod 600 it", "file", k.File)
	}
	f, err := os.Open(k.File)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxKey+1))
	if err == nil && len(text) > maxKey {
		err = fmt.Errorf("%s is longer than %d bytes", k.File, maxKey)
	}
	return string(text), err
}
