package demoagent

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

// chunkLine is what stands before and behind the text of a line that streams
// a chunk. Such lines are put together by hand: encoding them with the SDK is
// an order of magnitude slower than a client reads them.
func (t *turn) chunkLine() (before, behind string) {
	return t.updateLine(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"`), `"}}}}` + "\n"
}

func (t *turn) updateLine(rest string) string {
	id, _ := json.Marshal(string(t.id)) // a string cannot fail
	return `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":` + string(id) + `,"update":` + rest
}

// stream sends numbered chunks, evenly if there is a rate.
func (t *turn) stream(ctx context.Context, arg argument) error {
	before, behind := t.chunkLine()
	out := batch{w: t.out}
	began := time.Now()
	for i := 1; i <= arg.n; i++ {
		if arg.rate > 0 {
			due := began.Add(time.Duration(float64(i-1) / float64(arg.rate) * float64(time.Second)))
			// A timer is not exact under a millisecond: what is due by then goes together.
			if wait := time.Until(due); wait > time.Millisecond {
				if err := out.flush(ctx); err != nil {
					return err
				}
				if err := pause(ctx, wait); err != nil {
					return err
				}
				if err := t.heed(ctx); err != nil {
					return err
				}
			}
		}
		out.buf = append(out.buf, before...)
		out.buf = append(out.buf, "chunk "...)
		out.buf = strconv.AppendInt(out.buf, int64(i), 10)
		out.buf = append(out.buf, ' ')
		out.buf = append(out.buf, behind...)
		if t.said < keptText {
			t.wrote(fmt.Sprintf("chunk %d ", i), false)
		}
		if err := out.flushFull(ctx); err != nil {
			return err
		}
	}
	return out.flush(ctx)
}

// tools makes tool calls that need no permission and do nothing.
func (t *turn) tools(ctx context.Context, arg argument) error {
	out := batch{w: t.out}
	start := t.updateLine(`{"sessionUpdate":"tool_call","kind":"execute","title":"Bash","status":"pending","_meta":{"duet":{"toolName":"Bash"},"claudeCode":{"toolName":"Bash"}},"toolCallId":"`)
	update := t.updateLine(`{"sessionUpdate":"tool_call_update","status":"in_progress","toolCallId":"`)
	done := t.updateLine(`{"sessionUpdate":"tool_call_update","status":"completed","toolCallId":"`)
	for i := 1; i <= arg.n; i++ {
		call := t.newCallID()
		out.buf = fmt.Appendf(out.buf, "%s%s\",\"rawInput\":{\"command\":\"echo %d\"}}}}\n", start, call, i)
		out.buf = fmt.Appendf(out.buf, "%s%s\"}}}\n", update, call)
		out.buf = fmt.Appendf(out.buf, "%s%s\",\"rawOutput\":\"%d\\n\"}}}\n", done, call, i)
		if i <= keptTools {
			t.rememberTool(call, i)
		}
		if err := out.flushFull(ctx); err != nil {
			return err
		}
		if t.script.has("slow") {
			if err := out.flush(ctx); err != nil {
				return err
			}
			if err := t.pauseIfSlow(ctx); err != nil {
				return err
			}
		}
	}
	return out.flush(ctx)
}

// garbage prints what a forgotten print statement would.
func (t *turn) garbage(ctx context.Context, _ argument) error {
	return t.raw(ctx, []byte("this line is no JSON {]\n"))
}

func (t *turn) badUTF8(ctx context.Context, _ argument) error {
	before, behind := t.chunkLine()
	return t.raw(ctx, []byte(before+"bad \xff\xfe\xc3( bytes "+behind))
}

func (t *turn) unknownUpdate(ctx context.Context, _ argument) error {
	return t.raw(ctx, []byte(t.updateLine(`{"sessionUpdate":"duet_demo_unknown","text":"nobody knows this","list":[1,2,3]}}}`+"\n")))
}

// longLine sends one chunk of text so long that its line is arg.n megabytes.
func (t *turn) longLine(ctx context.Context, arg argument) error {
	before, behind := t.chunkLine()
	text := bytes.Repeat([]byte("x"), max(0, arg.n<<20-len(before)-len(behind)))
	return t.raw(ctx, append(append([]byte(before), text...), behind...))
}

func (t *turn) raw(ctx context.Context, line []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	_, err := t.out.Write(line)
	return err
}
